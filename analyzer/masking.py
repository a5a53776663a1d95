"""Hides what an archive says of its host: paths, host names, and environment values that are not on an allow-list."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

MASK = "<masked>"
#: Names of variables whose values may be shown; a secret's name overrules.
ALLOWED = re.compile(
    r"^(SGLANG_|SGL_GRAPH_|CUDA_|NCCL_|TORCH_|PYTORCH_|TRITON_|FLASHINFER_|HF_HUB_OFFLINE$|TRANSFORMERS_OFFLINE$"
    r"|HF_DATASETS_OFFLINE$|PYTHONUNBUFFERED$|PYTHONHASHSEED$|MINISERVE_|OMP_NUM_THREADS$)"
)
SECRET = re.compile(r"(KEY|TOKEN|SECRET|PASSW|CREDENTIAL|COOKIE)", re.IGNORECASE)
#: Flags named after what they hold: `--api-key`, never `--max-total-tokens` or `--skip-tokenizer-init`.
_SECRET_FLAG = re.compile(
    r"^--(?:[\w-]*[-_])?(?:key|token|secret|passw\w*|passphrase|credentials?|cookie)$", re.IGNORECASE
)
#: An absolute path of at least two parts; URLs and JSON pointers do not start after one of these.
_PATH = re.compile(
    r"(?<![\w.:/<>@])/(?:[\w.@+~-]+/)+[\w.@+~-]*|(?<![\w.:/<>@])/(?:home|root|tmp|work|mnt|data)\b/?[\w.@+~-]*"
)
#: From these on the rest of a path is the same on every host, and worth keeping.
_KEPT = ("/site-packages/", "/dist-packages/", "/sglang/", "/lib/python")


class Masker:
    """Masks strings and JSON values, and counts what it masked by kind."""

    def __init__(self, hosts: Sequence[str] = ()) -> None:
        """Args: hosts: names of the host, which are masked wherever they stand as words."""
        names = [re.escape(name) for name in hosts if len(name) > 1 and name != "localhost"]
        self._hosts = re.compile(rf"(?<![\w.-])(?:{'|'.join(names)})(?![\w-])") if names else None
        self.counts: Counter[str] = Counter()

    def text(self, text: str) -> str:
        """A string without paths and host names."""

        def path(match: re.Match[str]) -> str:
            self.counts["paths"] += 1
            return _shorten(match[0])

        masked = _PATH.sub(path, text) if "/" in text else text
        if self._hosts is not None:
            masked, count = self._hosts.subn("<host>", masked)
            self.counts["host names"] += count
        return masked

    def value(self, value: Any) -> Any:
        """A JSON value with every string in it masked; environments and secret flags by their names."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {
                self.text(str(key)): self._environment(item)
                if key == "env" and isinstance(item, Mapping)
                else self._secret(key, item)
                for key, item in value.items()
            }
        if isinstance(value, list):
            return self._arguments([self.value(item) for item in value])
        return value

    def _environment(self, env: Mapping[str, Any]) -> dict[str, Any]:
        return {str(name): self._variable(str(name), value) for name, value in env.items()}

    def _variable(self, name: str, value: Any) -> Any:
        if ALLOWED.match(name) and not SECRET.search(name):
            return self.value(value)
        self.counts["environment values"] += 1
        return MASK

    def _secret(self, key: object, item: Any) -> Any:
        if (
            isinstance(key, str)
            and isinstance(item, str)
            and item
            and re.fullmatch(r"[\w-]*(api_key|_token|secret|password)", key)
        ):
            self.counts["secrets"] += 1
            return MASK
        return self.value(item)

    def _arguments(self, items: list[Any]) -> list[Any]:
        """A command line: the value after a secret's flag, and K=V before the program."""
        found = list(items)
        for at, item in enumerate(found):
            if not isinstance(item, str):
                continue
            name, equals, _ = item.partition("=")
            if not _SECRET_FLAG.match(name):
                continue
            if equals:
                found[at] = f"{name}={MASK}"
            elif at + 1 < len(found) and not str(found[at + 1]).startswith("--"):
                found[at + 1] = MASK
            else:
                continue
            self.counts["secrets"] += 1
        return found


def _shorten(path: str) -> str:
    for mark in _KEPT:
        at = path.rfind(mark)
        if at >= 0:
            return f"<path>{path[at:]}"
    tail = path.rstrip("/").rsplit("/", 1)[-1]
    # The name of a file says what ran; the name of a folder may say whose it is.
    return f"<path>/{tail}" if "." in tail else "<path>"
