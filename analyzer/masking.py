"""Hides what an archive says of its host: paths, host names, and environment values that are not on an allow-list."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

MASK = "<masked>"
#: Names of variables whose values may be shown; a secret's name overrules.
ALLOWED = re.compile(
    r"^(SGLANG_|SGL_GRAPH_|CUDA_|NCCL_|TORCH_|PYTORCH_|TRITON_|FLASHINFER_|HF_HUB_OFFLINE$|TRANSFORMERS_OFFLINE$"
    r"|HF_DATASETS_OFFLINE$|PYTHONUNBUFFERED$|PYTHONHASHSEED$|MINISERVE_|OMP_NUM_THREADS$)"
)
SECRET = re.compile(r"(KEY|TOKEN|SECRET|PASSW|CREDENTIAL|COOKIE)", re.IGNORECASE)
_SECRET_WORDS = r"(?:key|token|secret|passw\w*|passphrase|credentials?|cookie|authorization)"
#: Flags named after what they hold: `--api-key`, never `--max-total-tokens` or `--skip-tokenizer-init`.
_SECRET_FLAG = re.compile(rf"^--(?:[\w-]*[-_])?{_SECRET_WORDS}$", re.IGNORECASE)
_SECRET_FLAG_IN_TEXT = re.compile(rf"(?<![\w-])(--(?:[\w-]*[-_])?{_SECRET_WORDS})(=|\s+)(?!--)(\S+)", re.IGNORECASE)
#: A member that is called `key` alone, or `shape_key`, holds what a graph is found by.
_SECRET_MEMBER = re.compile(
    r"(?:[\w-]*[_-])?(?:(?:api|access|private|secret|auth|signing|encryption)[_-]?key|token|secret|passw\w*|passphrase"
    r"|credentials?|cookie|authorization)",
    re.IGNORECASE,
)
#: Members whose name ends like a secret's and that name a part of a model's vocabulary.
_VOCABULARY = re.compile(r"(?:bos|eos|pad|unk|sep|cls|mask|image|video|audio|stop|added|special)_token", re.IGNORECASE)
#: `NAME=value` as a shell takes it.
_ASSIGNMENT = re.compile(r"(?<![\w-])([A-Z][A-Z0-9_]{2,})=(\"[^\"]*\"|'[^']*'|[^\s;\"']+)")
#: A URL, then an absolute path of at least two parts, or of one that is known to hold what differs between hosts.
_PLACE = re.compile(
    r"(?P<url>\b[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>\\]+)"
    r"|(?<![\w./<>@~-])(?P<path>~?/(?:[^\s/'\"<>:;,|=()\[\]{}\\]+/)+[^\s/'\"<>:;,|=()\[\]{}\\]*"
    r"|~?/(?:home|root|tmp|work|mnt|data|scratch|srv|opt|var|models|workspace|Users)\b/?[\w.@+~-]*)"
)
_URL = re.compile(r"(?P<scheme>[^:]+)://(?:(?P<user>[^/@]*)@)?(?P<host>\[[^\]]*\]|[^/:?#]*)(?P<rest>.*)", re.DOTALL)
#: Addresses of private networks, and any address with a port; the loopback and the wildcard tell nothing.
_ADDRESS = re.compile(
    r"(?<![\w.])(?!127\.|0\.0\.0\.0)(?:(?:10(?:\.\d{1,3}){3}|192\.168(?:\.\d{1,3}){2}|169\.254(?:\.\d{1,3}){2}"
    r"|172\.(?:1[6-9]|2\d|3[01])(?:\.\d{1,3}){2})(?![\w.])|(?:\d{1,3}\.){3}\d{1,3}(?=:\d))"
)
_NO_HOST = re.compile(r"localhost|127(?:\.\d+){3}|0\.0\.0\.0|\[::1?\]|")
_SHORTEST_VALUE = 6
#: From these on the rest of a path is the same on every host, and worth keeping.
_KEPT = ("/site-packages/", "/dist-packages/", "/sglang/", "/lib/python")


#: Members that name what a row is about, and those that tell its value.
_NAMING = ("name", "subject")
_TELLING = frozenset({"value", "predicted", "observed", "text", "default", "settled"})


def is_secret(name: str) -> bool:
    """Whether a member or setting is named after a secret."""
    return _SECRET_MEMBER.fullmatch(name) is not None and not _VOCABULARY.search(name)


def secrets_of(value: Any) -> set[str]:
    """What a JSON value holds under secrets' names: behind flags, in members, in rows about settings."""
    found: set[str] = set()
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, Mapping):
            todo += item.values()
            named = next((item[key] for key in _NAMING if isinstance(item.get(key), str)), "")
            found.update(text for key, text in item.items() if isinstance(text, str) and is_secret(str(key)))
            if is_secret(named):
                found.update(text for key in ("value", "predicted") if isinstance(text := item.get(key), str))
        elif isinstance(item, list):
            todo += item
            for flag, following in pairwise([*item, None]):
                name, equals, text = flag.partition("=") if isinstance(flag, str) else ("", "", "")
                if _SECRET_FLAG.match(name):
                    found.add(text if equals else following if isinstance(following, str) else "")
    return {text for text in found if text and not text.startswith("--") and text != MASK}


class Masker:
    """Masks strings and JSON values, and counts what it masked by kind."""

    def __init__(
        self, hosts: Sequence[str] = (), values: Mapping[str, str] | None = None, secrets: Iterable[str] = ()
    ) -> None:
        """Mask what these and the general rules name.

        Args:
            hosts: Names of hosts, masked wherever they stand as words.
            values: Variables that the archive holds, by name.
            secrets: What the archive holds under secrets' names (`secrets_of`).
        """
        names = {part for name in hosts for part in (name, name.split(".")[0]) if len(part) > 1 and part != "localhost"}
        words = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
        self._hosts = re.compile(rf"(?<![\w.-])(?:{words})(?:\.[\w.-]+)?(?![\w-])", re.IGNORECASE) if words else None
        hidden = {n: v for n, v in (values or {}).items() if v and (not ALLOWED.match(n) or SECRET.search(n))}
        self._pairs = _any_of(re.escape(f"{name}={value}") for name, value in hidden.items())
        long = {value for value in (*hidden.values(), *secrets) if len(value) >= _SHORTEST_VALUE}
        self._values = _any_of(rf"(?<!\w){re.escape(value)}(?!\w)" for value in long)
        self.counts: Counter[str] = Counter()

    def text(self, text: str) -> str:
        """A string without paths, host names, secrets of flags and values of variables."""
        masked = text
        if self._pairs is not None:
            masked = self._pairs.sub(self._known_pair, masked)
        if "=" in masked:
            masked = _ASSIGNMENT.sub(self._assignment, masked)
        if "--" in masked:
            masked = _SECRET_FLAG_IN_TEXT.sub(self._flag, masked)
        if "/" in masked:
            masked = self._whole_path(masked) or _PLACE.sub(self._place, masked)
        if self._values is not None:
            masked, count = self._values.subn(MASK, masked)
            self.counts["environment values"] += count
        masked, count = _ADDRESS.subn("<host>", masked)
        self.counts["host names"] += count
        if self._hosts is not None:
            masked, count = self._hosts.subn("<host>", masked)
            self.counts["host names"] += count
        return masked

    def _known_pair(self, match: re.Match[str]) -> str:
        self.counts["environment values"] += 1
        return f"{match[0].partition('=')[0]}={MASK}"

    def _assignment(self, match: re.Match[str]) -> str:
        if match[2] == MASK or (ALLOWED.match(match[1]) and not SECRET.search(match[1])):
            return match[0]
        self.counts["environment values"] += 1
        return f"{match[1]}={MASK}"

    def _flag(self, match: re.Match[str]) -> str:
        if match[3] == MASK:
            return match[0]
        self.counts["secrets"] += 1
        return f"{match[1]}{match[2]}{MASK}"

    def _whole_path(self, text: str) -> str | None:
        """A string that is a path and nothing else may hold spaces and whatever else a name may hold."""
        flag, equals, path = text.rpartition("=") if text.startswith("-") else ("", "", text)
        if not re.fullmatch(r"~?/[^\n/]+(?:/[^\n/]*)+", path) or "://" in path or ":/" in path:
            return None
        if re.search(r"\s/|\s--|\s\S+=", path):
            return None  # words after a path
        self.counts["paths"] += 1
        return f"{flag}{equals}{_shorten(path)}"

    def _place(self, match: re.Match[str]) -> str:
        url = match["url"]
        if url is None:
            self.counts["paths"] += 1
            return _shorten(match[0])
        parts = _URL.fullmatch(url)
        assert parts is not None
        scheme, user, host, rest = parts["scheme"], parts["user"], parts["host"], parts["rest"]
        if scheme.lower() == "file":
            self.counts["paths"] += 1
            return f"file://{_shorten(rest)}"
        if user is not None:
            self.counts["secrets"] += 1
            user = f"{MASK}@"
        # A name without a dot, or an address, is one of the host's own network.
        if not _NO_HOST.fullmatch(host) and ("." not in host or re.fullmatch(r"[\d.]+|\[.*\]", host)):
            self.counts["host names"] += 1
            host = "<host>"
        return f"{scheme}://{user or ''}{host}{rest}"

    def value(self, value: Any) -> Any:
        """A JSON value with every string in it masked; environments and secret flags by their names."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            named = next((value[key] for key in _NAMING if isinstance(value.get(key), str)), None)
            if named is not None and is_secret(named):
                return self._setting(value)
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

    def _setting(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """A row about a setting that is a secret: what it says of its value goes."""
        found = {}
        for key, item in row.items():
            told = key in _TELLING and isinstance(item, str) and item not in ("", "unknown")
            self.counts["secrets"] += told
            found[self.text(str(key))] = MASK if told else self.value(item)
        return found

    def _secret(self, key: object, item: Any) -> Any:
        if isinstance(key, str) and isinstance(item, str) and item and is_secret(key):
            self.counts["secrets"] += 1
            return MASK
        return self.value(item)

    def _arguments(self, items: list[Any]) -> list[Any]:
        """A command line: the value after a secret's flag; `text` has masked what stands behind an equals sign."""
        found = list(items)
        for at, item in enumerate(found):
            if not isinstance(item, str):
                continue
            name, equals, _ = item.partition("=")
            if not _SECRET_FLAG.match(name):
                continue
            if equals:
                found[at] = f"{name}={MASK}"  # counted by `text`, which stops at a space
            elif at + 1 < len(found) and not str(found[at + 1]).startswith("--"):
                found[at + 1] = MASK
                self.counts["secrets"] += 1
        return found


def _any_of(patterns: Iterable[str]) -> re.Pattern[str] | None:
    """Whichever of the patterns is found, longer ones before those that they hold."""
    found = sorted(set(patterns), key=len, reverse=True)
    return re.compile("|".join(found)) if found else None


def _shorten(path: str) -> str:
    for mark in _KEPT:
        at = path.rfind(mark)
        if at >= 0:
            return f"<path>{path[at:]}"
    tail = path.rstrip("/").rsplit("/", 1)[-1]
    # The name of a file says what ran; the name of a folder may say whose it is.
    return f"<path>/{tail}" if "." in tail else "<path>"
