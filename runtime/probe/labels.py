"""The path map drives the instrument: which site captures, which path it belongs to, and the label read from the frame."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from .expressions import Unevaluable, evaluate

#: Names of the member that holds a key's size, best first; else its first whole number.
_SIZES = ("size", "bs", "batch_size", "num_tokens")
_DEEPEST_STACK = 200
#: Stands in Python's own qualified names between a function and what is defined in it.
_INSIDE = ".<locals>"


@dataclass(frozen=True, slots=True)
class Label:
    """What the map says of a capture.

    Attributes:
        site: `{id, file, line, qualname}` of the map's site, or None when the stack matches none.
        path: Identifier of the path, or None when none or several match.
        label: `runner:family/variant@size`, or None.
        key: The label expression's value, as JSON or text.
        owner: The object whose method captures.
    """

    site: dict[str, Any] | None = None
    path: str | None = None
    label: str | None = None
    key: Any = None
    owner: Any = None


class LabelReader:
    """Matches capturing stacks against `map.json` of the injection folder."""

    def __init__(self, raw: Mapping[str, Any] | None) -> None:
        """Args: raw: the map (`sites`, `paths`), or None."""
        sites = (raw or {}).get("sites") or []
        self._paths: list[dict[str, Any]] = list((raw or {}).get("paths") or [])
        self._sites: dict[str, list[dict[str, Any]]] = {}
        for site in sites:
            if site.get("role") in (None, "capture", "pool", "break"):
                self._sites.setdefault(_function(site["qualname"]), []).append(site)

    @classmethod
    def of_folder(cls, folder: Path) -> LabelReader:
        """The reader for an injection folder, with or without a map.

        Raises:
            OSError, ValueError: The map is there and cannot be read.
        """
        path = folder / "map.json"
        return cls(json.loads(path.read_text("utf-8")) if path.exists() else None)

    def read(self, frame: FrameType | None) -> Label:
        """What the map says of a capture whose stack ends in `frame`."""
        if not self._sites:
            return Label()
        stack = list(_walk(frame))
        found = next(((f, site) for f in stack if (site := self._site(f)) is not None), None)
        if found is None:
            return Label()
        at, site = found
        paths = self._matching_paths(site, stack)
        known = {"id": site["id"], "file": site["file"], "line": at.f_lineno, "qualname": site["qualname"]}
        owner = at.f_locals.get("self")
        names = {_name(path) for path in paths}
        label: str | None = None
        key: Any = None
        if len(names) == 1 and paths:
            value = self._value(paths[0], stack[stack.index(at) :], stack)
            if value is not _NOTHING:
                label = _spell(names.pop(), value, paths[0])
                key = _as_json(value)
        path = paths[0]["id"] if len(paths) == 1 else None
        return Label(known, path, label, key, owner)

    def _site(self, frame: FrameType) -> dict[str, Any] | None:
        code = frame.f_code
        candidates = [site for site in self._sites.get(_plain(code), ()) if _same_file(code.co_filename, site["file"])]
        return min(candidates, key=lambda site: abs(site["line"] - frame.f_lineno), default=None)

    def _matching_paths(self, site: dict[str, Any], stack: list[FrameType]) -> list[dict[str, Any]]:
        """Paths over the site whose call chain agrees best with the stack."""
        paths = [path for path in self._paths if site["id"] in path.get("sites", ())]
        if len(paths) < 2:
            return paths
        seen = [(_plain(f.f_code), f.f_code.co_filename) for f in stack]

        def score(path: dict[str, Any]) -> tuple[float, int]:
            chain = path.get("chain") or []
            hits = sum(any(_function(c["qualname"]) == q and _same_file(f, c["file"]) for q, f in seen) for c in chain)
            # Of chains that the stack bears out alike, the longer says more: a worker around the one that both go through.
            return (hits / len(chain), hits) if chain else (0.0, 0)

        best = max(score(path) for path in paths)
        return [path for path in paths if score(path) == best]

    @staticmethod
    def _value(path: dict[str, Any], outward: list[FrameType], stack: list[FrameType]) -> Any:
        expression = (path.get("label") or {}).get("expression")
        if not expression:
            return _NOTHING
        for frame in (*outward, *stack):
            try:
                return evaluate(expression, _Names(frame))
            except Unevaluable:
                continue
        return _NOTHING


_NOTHING = object()


class _Names(Mapping[str, Any]):
    """A frame's variables, its own before its module's."""

    def __init__(self, frame: FrameType) -> None:
        self._locals = frame.f_locals

    def __getitem__(self, name: str) -> Any:
        return self._locals[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._locals)

    def __len__(self) -> int:
        return len(self._locals)


def _walk(frame: FrameType | None) -> Iterator[FrameType]:
    for _ in range(_DEEPEST_STACK):
        if frame is None:
            return
        yield frame
        frame = frame.f_back


def _function(qualname: str) -> str:
    return qualname.rpartition(":")[2].replace(_INSIDE, "")


def _plain(code: CodeType) -> str:
    """A function's qualified name as maps spell it: what it is nested in is named, that it is a local of it is not."""
    return getattr(code, "co_qualname", code.co_name).replace(_INSIDE, "")


def _same_file(filename: str, relative: str) -> bool:
    return filename == relative or filename.replace("\\", "/").endswith("/" + relative)


def _name(path: dict[str, Any]) -> str:
    return path.get("name") or f"{path.get('runner')}:{path.get('family')}"


def _spell(name: str, value: Any, path: dict[str, Any]) -> str:
    """The raw label of a key: its size after `@`, its texts as variants."""
    size, variants = _parts(value)
    known = [v for v in (path.get("label") or {}).get("variants") or [] if v]
    chosen = [v for v in variants if v in known] or variants
    text = name + "".join(f"/{v}" for v in chosen)
    return text if size is None else f"{text}@{size}"


def _parts(value: Any) -> tuple[int | None, list[str]]:
    if isinstance(value, bool) or value is None:
        return None, []
    if isinstance(value, int):
        return value, []
    if isinstance(value, str):
        return None, [value]
    members = _members(value)
    numbers = [v for _, v in members if isinstance(v, int) and not isinstance(v, bool)]
    named = dict(members)
    sizes = [named[n] for n in _SIZES if isinstance(named.get(n), int)]
    return next(iter(sizes or numbers), None), [v for _, v in members if isinstance(v, str)]


def _members(value: Any) -> list[tuple[str, Any]]:
    if hasattr(value, "_asdict"):
        return list(value._asdict().items())
    if hasattr(value, "__dataclass_fields__"):
        return [(name, getattr(value, name, None)) for name in value.__dataclass_fields__]
    if isinstance(value, tuple | list):
        return [(str(i), v) for i, v in enumerate(value)]
    return []


def _as_json(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    members = _members(value)
    if isinstance(value, tuple | list):
        return [_as_json(v) for _, v in members]
    return {name: _as_json(v) for name, v in members} if members else repr(value)[:200]
