"""Checks an environment before a run: can the probe enter, and what will it see? One check, one line, one remedy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sgl_graph.analyzer.errors import ProbeUnsupported
from sgl_graph.runtime.inject import ProbeSettings, write_injection

Status = Literal["ok", "warning", "failure"]
_SECONDS = 120

#: Runs in the serving interpreter: facts about torch without touching a device.
_FACTS = r"""
import importlib.util, json, sys
facts = {"version": sys.version.split()[0], "flags": [f for f in ("isolated", "ignore_environment", "no_site") if getattr(sys.flags, f)]}
try:
    facts["bindings"] = importlib.util.find_spec("cuda.bindings.runtime") is not None
except ImportError:
    facts["bindings"] = False
try:
    import torch
    graph = getattr(torch.cuda, "CUDAGraph", None)
    facts["torch"] = str(torch.__version__)
    facts["cuda"] = torch.version.cuda
    facts["methods"] = [n for n in ("capture_begin", "capture_end", "replay", "reset", "register_replay_start_hook") if hasattr(graph, n)]
    facts["allocator"] = [n for n in ("_cuda_record_memory_history", "_cuda_memorySnapshot", "_cuda_memoryStats", "_cuda_setMemoryMetadata") if hasattr(torch._C, n)]
except Exception as error:
    facts["torch"] = None
    facts["torch_error"] = f"{type(error).__name__}: {error}"
try:
    import ctypes
    cuda = ctypes.CDLL("libcuda.so.1")
    version = ctypes.c_int()
    cuda.cuDriverGetVersion(ctypes.byref(version))
    facts["driver"] = version.value
    facts["driver_functions"] = [n for n in ("cuStreamGetCaptureInfo_v2", "cuGraphKernelNodeGetParams_v2", "cuFuncGetParamInfo", "cuFuncGetName") if not hasattr(cuda, n)]
except OSError:
    facts["driver"] = None
print(json.dumps(facts))
"""

#: Runs under an injection: did the probe enter this process and a child of it, and was another sitecustomize chained?
_INJECTED = r"""
import json, subprocess, sys
inner = "import sys; print('_sgl_graph_probe.bootstrap' in sys.modules)"
child = subprocess.run([sys.executable, "-c", inner], capture_output=True, text=True).stdout.strip()
print(json.dumps({"self": "_sgl_graph_probe.bootstrap" in sys.modules, "child": child == "True",
                  "chained": getattr(sys.modules.get("sitecustomize"), "__file__", None)}))
"""


@dataclass(frozen=True, slots=True)
class Check:
    """One check's outcome.

    Attributes:
        name: What was checked.
        status: `ok`; `warning` when something will be out of sight; `failure` when a run cannot work.
        text: What was found.
        remedy: What to do about it; empty when nothing is to be done.
    """

    name: str
    status: Status
    text: str
    remedy: str = ""


def examine(python: str = sys.executable, env: Mapping[str, str] | None = None) -> list[Check]:
    """All checks, in the order of a run.

    Args:
        python: The interpreter that serves.
        env: Its environment; this process's by default.
    """
    environment = dict(os.environ if env is None else env)
    facts, error = _ask([python, "-c", _FACTS], environment)
    checks = [_tool(), _interpreter(python, facts, error)]
    if facts is not None:
        checks.append(_torch(facts))
        if facts["torch"] is not None:
            checks += [_allocator(facts, environment), _hooks(facts)]
        checks += [_bindings(facts), _driver(facts)]
        checks += _injection(python, environment)
    checks.append(_writable())
    return checks


def _ask(command: list[str], env: Mapping[str, str]) -> tuple[dict[str, Any] | None, str]:
    try:
        done = subprocess.run(command, env=dict(env), capture_output=True, text=True, timeout=_SECONDS, check=False)
        answer = json.loads(done.stdout.strip().splitlines()[-1])
    except OSError as error:
        return None, f"cannot be started: {error.strerror}"
    except subprocess.TimeoutExpired:
        return None, f"no answer within {_SECONDS} seconds"
    except (ValueError, IndexError):
        return None, (done.stderr.strip().splitlines() or ["no answer"])[-1]
    return (answer, "") if isinstance(answer, dict) else (None, "no answer")


def _tool() -> Check:
    return Check("tool", "ok", f"Python {sys.version.split()[0]} at {sys.executable}")


def _interpreter(python: str, facts: dict[str, Any] | None, error: str) -> Check:
    if facts is None:
        return Check("interpreter", "failure", f"{python}: {error}", "name the serving interpreter with --python")
    if facts["flags"]:
        text = f"{python} runs with {', '.join(facts['flags'])}: it ignores PYTHONPATH or sitecustomize"
        return Check("interpreter", "failure", text, "serve without -E, -I and -S")
    major, minor = (int(part) for part in facts["version"].split(".")[:2])
    if (major, minor) < (3, 10):
        return Check("interpreter", "failure", f"Python {facts['version']}", "the probe needs Python 3.10 or later")
    return Check("interpreter", "ok", f"Python {facts['version']} at {python}")


def _torch(facts: dict[str, Any]) -> Check:
    if facts["torch"] is None:
        return Check(
            "torch", "failure", facts.get("torch_error", "missing"), "install torch in the serving environment"
        )
    if facts["cuda"] is None:
        return Check("torch", "failure", f"torch {facts['torch']} has no CUDA", "install a CUDA build of torch")
    return Check("torch", "ok", f"torch {facts['torch']}, CUDA {facts['cuda']}")


def _allocator(facts: dict[str, Any], env: Mapping[str, str]) -> Check:
    have = facts.get("allocator", [])
    missing = {"_cuda_record_memory_history", "_cuda_memorySnapshot", "_cuda_memoryStats"} - set(have)
    settings = env.get("PYTORCH_CUDA_ALLOC_CONF", "") + env.get("PYTORCH_ALLOC_CONF", "")
    if "cudaMallocAsync" in settings:
        remedy = "leave backend:cudaMallocAsync out of PYTORCH_CUDA_ALLOC_CONF"
        return Check("allocator", "failure", "the cudaMallocAsync backend keeps no history of its events", remedy)
    if missing:
        return Check("allocator", "failure", f"this torch lacks {', '.join(sorted(missing))}", "use torch 2.6 or later")
    if "_cuda_setMemoryMetadata" not in have:
        text = "events are ordered against replays by time: what is too close stays open"
        return Check("allocator", "warning", text, "torch 2.10 or later lets each event carry the replay before it")
    return Check("allocator", "ok", "events carry the number of the replay before them")


def _hooks(facts: dict[str, Any]) -> Check:
    have = facts.get("methods", [])
    missing = {"capture_begin", "capture_end", "replay"} - set(have)
    if missing:
        return Check(
            "graph hooks", "failure", f"CUDAGraph lacks {', '.join(sorted(missing))}", "use torch 2.6 or later"
        )
    replay = "torch's own hook" if "register_replay_start_hook" in have else "the class's method"
    return Check("graph hooks", "ok", f"captures by the class's methods, replays by {replay}")


def _bindings(facts: dict[str, Any]) -> Check:
    if facts["bindings"]:
        return Check("cuda-bindings", "ok", "launches through cuda-bindings are seen")
    return Check("cuda-bindings", "ok", "not installed: nothing can be launched through it")


def _driver(facts: dict[str, Any]) -> Check:
    if facts["driver"] is None:
        return Check("driver", "failure", "libcuda.so.1 cannot be loaded", "run on a host with an NVIDIA driver")
    if facts["driver_functions"]:
        text = f"the driver lacks {', '.join(facts['driver_functions'])}: kernels' parameters cannot be read"
        return Check("driver", "failure", text, "use a driver for CUDA 12.4 or later")
    return Check("driver", "ok", f"CUDA {facts['driver'] // 1000}.{facts['driver'] % 1000 // 10}")


def _injection(python: str, env: Mapping[str, str]) -> Iterator[Check]:
    with tempfile.TemporaryDirectory(prefix="sgl-graph-") as place:
        try:
            settings = ProbeSettings(run="doctor", launch="doctor", receipts=Path(place) / "receipts")
            injection = write_injection(Path(place) / "inject", settings)
        except ProbeUnsupported as error:
            yield Check("injection", "failure", str(error), "make the temporary folder writable (TMPDIR)")
            return
        found, error_text = _ask([python, "-c", _INJECTED], injection.environment(env))
        folder = str(injection.folder)
    if found is None or not found["self"]:
        why = error_text or "PYTHONPATH or sitecustomize did not act"
        yield Check("injection", "failure", f"the probe does not enter: {why}", "unset what clears PYTHONPATH")
        return
    if not found["child"]:
        yield Check("injection", "failure", "the probe does not enter child processes", "unset what clears PYTHONPATH")
        return
    yield Check("injection", "ok", "the probe enters this interpreter and its children")
    chained = found["chained"]
    if chained and not str(chained).startswith(folder):
        yield Check("sitecustomize", "ok", f"another one is chained: {chained}")


def _writable() -> Check:
    try:
        with tempfile.TemporaryFile() as file:
            file.write(b"x")
    except OSError as error:
        return Check(
            "temporary folder", "failure", error.strerror or str(error), "set TMPDIR to a writable folder with space"
        )
    return Check("temporary folder", "ok", tempfile.gettempdir())


def worst(checks: list[Check]) -> Status:
    """The gravest status."""
    statuses = [check.status for check in checks]
    return "failure" if "failure" in statuses else "warning" if "warning" in statuses else "ok"
