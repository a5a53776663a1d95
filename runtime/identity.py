"""Who ran what with what: the tool, the checkout, the interpreter that serves and its packages."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import os
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sgl_graph.analyzer.records.base import canonical_json

_PACKAGES = ("sgl_graph.analyzer", "sgl_graph.runtime", "sgl_graph.cli")
_SUFFIXES = (".py", ".j2")
_ASK = """
import importlib.metadata as m, json, platform
def v(*names):
    for n in names:
        try: return m.version(n)
        except Exception: pass
names = {"torch": ("torch",), "sglang": ("sglang",), "cuda_bindings": ("cuda-bindings",), "triton": ("triton",),
         "transformers": ("transformers",), "flashinfer": ("flashinfer-python",), "numpy": ("numpy",)}
print(json.dumps({"python": platform.python_version(), **{k: v(*n) for k, n in names.items()}}))
"""


@functools.cache
def tool_digest() -> str:
    """sha256 over the tool's installed files, by package and relative name."""
    files: dict[str, str] = {}
    for package in _PACKAGES:
        spec = importlib.util.find_spec(package)
        for place in (spec.submodule_search_locations or []) if spec else []:
            root = Path(place)
            for path in sorted(root.rglob("*")):
                if path.suffix in _SUFFIXES and "__pycache__" not in path.parts:
                    name = f"{package}/{path.relative_to(root).as_posix()}"
                    files[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return hashlib.sha256(canonical_json(files)).hexdigest()


def source_index(base: Path, package: str = "sglang") -> dict[str, str]:
    """sha256 of each module of the serving package, by dotted name.

    Args:
        base: The folder that holds the package.
        package: Its name.
    """
    index: dict[str, str] = {}
    for folder, folders, files in os.walk(base / package):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for file in sorted(files):
            if not file.endswith(".py"):
                continue
            path = Path(folder) / file
            parts = path.relative_to(base).with_suffix("").parts
            dotted = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            try:
                index[dotted] = hashlib.sha256(path.read_bytes()).hexdigest()
            except OSError:
                continue
    return index


def checkout_identity(root: Path, base: Path, layout: str) -> dict[str, Any]:
    """Commit, tree and dirty files of a checkout; None for what git does not know."""

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(root), *arguments],
                capture_output=True,
                timeout=30,
                check=False,
                env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None

    commit, tree = git("rev-parse", "HEAD"), git("rev-parse", "HEAD^{tree}")
    status = git("status", "--porcelain", "--untracked-files=normal", "--", str(base / "sglang")) if commit else None
    dirty = [line[3:] for line in status.splitlines()] if status is not None else None
    return {
        "root": str(root),
        "layout": layout,
        "commit": commit.strip() if commit else None,
        "tree": tree.strip() if tree else None,
        "dirty": bool(dirty) if dirty is not None else None,
        "dirty_files": dirty[:50] if dirty else [],
    }


def release_of(base: Path) -> str | None:
    """The release as the checkout states it, without importing it."""
    for name in ("sglang/_version.py", "sglang/version.py"):
        try:
            text = (base / name).read_text("utf-8", "replace")
        except OSError:
            continue
        for line in text.splitlines():
            left, equals, right = line.partition("=")
            if equals and left.split(":")[0].strip() in ("__version__", "version"):
                value = right.split("=")[-1].strip().strip("\"'")
                if value and value[0].isdigit():
                    return value
    found = sorted(base.glob("sglang-*.dist-info"))
    return found[0].name.removeprefix("sglang-").removesuffix(".dist-info") if found else None


def serving_environment(interpreter: str, env: Mapping[str, str]) -> dict[str, Any]:
    """Versions in the interpreter that serves; asked of its package metadata, nothing heavy is imported."""
    try:
        done = subprocess.run(
            [interpreter, "-c", _ASK], capture_output=True, timeout=60, check=False, env=dict(env), cwd="/"
        )
        answer = json.loads(done.stdout) if done.returncode == 0 else {}
    except (OSError, subprocess.TimeoutExpired, ValueError):
        answer = {}
    return answer if isinstance(answer, dict) else {}


def host_identity() -> dict[str, Any]:
    """This host, as far as results may depend on it."""
    return {"system": platform.system(), "release": platform.release(), "machine": platform.machine()}
