"""A path map as its readers need it: contract fields only, additions of other releases tolerated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sgl_graph.analyzer.errors import ConfigError
from sgl_graph.analyzer.records.pathmap import SCHEMA
from sgl_graph.analyzer.records.strict_json import parse_json


@dataclass(frozen=True)
class MapPath:
    """One capture path of the map."""

    id: str
    name: str
    family: str
    worker: str
    runner: str
    backend: str
    reachable: str
    trigger: str | None
    inspectability: str
    variants: tuple[str | None, ...]
    buckets: tuple[int, ...] | None
    clamped_by: str | None
    #: `file:line` of the function that computes the buckets, or of the path's first site.
    decided_at: str
    nested_in: str | None
    depends_on: tuple[str, ...]

    def owns(self, label: str) -> bool:
        """Whether a raw label is one of this path's."""
        name = label.rsplit("@", 1)[0]
        return name == self.name or name.startswith(f"{self.name}/")


class MapView:
    """Read access to a map's JSON; a member of the wrong shape counts as absent."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.body = body
        self.paths = tuple(_path(item, self._sites()) for item in self._list("paths"))

    @classmethod
    def parse(cls, data: bytes, name: str) -> MapView:
        """A view of `map.json`.

        Raises:
            ConfigError: It is no path map of a schema that is known.
        """
        try:
            body = parse_json(data)
        except ValueError as error:
            raise ConfigError(f"{name}: not JSON: {error}") from error
        if not isinstance(body, dict) or body.get("schema") != SCHEMA:
            raise ConfigError(
                f"{name}: not a path map of schema {SCHEMA}", hint="make one with sgl-graph preflight --format json"
            )
        return cls(body)

    @property
    def starts(self) -> tuple[str, str]:
        """yes | no | unresolved, and the reason with its line."""
        starts = self.body.get("starts")
        if isinstance(starts, str):
            return starts, ""
        if not isinstance(starts, Mapping):
            return "unresolved", ""
        at = f" ({starts.get('file')}:{starts.get('line')})" if starts.get("file") else ""
        return str(starts.get("value") or ("no" if starts.get("why") else "yes")), f"{starts.get('why') or ''}{at}"

    @property
    def checkout_digest(self) -> str | None:
        """The digest of the source that was mapped."""
        checkout = self.body.get("checkout")
        digest = checkout.get("digest") if isinstance(checkout, Mapping) else None
        return digest if isinstance(digest, str) else None

    @property
    def release(self) -> str | None:
        """The release that the mapped checkout stated."""
        checkout = self.body.get("checkout")
        version = checkout.get("sglang_version") if isinstance(checkout, Mapping) else None
        return version if isinstance(version, str) and version else None

    @property
    def reachable_files(self) -> list[str]:
        """Files of the sites that may run, relative to the folder that holds the package."""
        return [str(s["file"]) for s in self._list("sites") if s.get("file") and s.get("reachable") != "no"]

    @property
    def labels(self) -> list[str]:
        """The derived requirements."""
        return [item for item in _items(self.body.get("labels")) if isinstance(item, str)]

    @property
    def traffic(self) -> list[Mapping[str, Any]]:
        """The traffic records."""
        return self._list("traffic")

    @property
    def material_gaps(self) -> list[str]:
        """Texts of the material gaps."""
        return [str(gap.get("text")) for gap in self._list("gaps") if gap.get("severity") == "material"]

    @property
    def workers(self) -> list[tuple[str, int | None, str]]:
        """(role, count, source) of each kind of process."""
        found = []
        for item in self._list("workers"):
            count = item.get("count")
            found.append(
                (
                    str(item.get("role") or "unknown"),
                    count if isinstance(count, int) else None,
                    str(item.get("source") or "map"),
                )
            )
        return found

    @property
    def config(self) -> list[Mapping[str, Any]]:
        """The resolved settings."""
        return self._list("config")

    def setting(self, name: str) -> Any:
        """The value of a setting, predicted where the source leaves it open; None when the map does not know it."""
        for item in self.config:
            if item.get("name") == name:
                return item.get("predicted") if item.get("source") == "unresolved" else item.get("value")
        return None

    @property
    def device(self) -> tuple[str | None, str | None]:
        """(name, kind) of the device that the map assumed."""
        device = self.body.get("device")
        if not isinstance(device, Mapping):
            return None, None
        name, kind = device.get("name"), device.get("kind")
        return (str(name) if name else None, str(kind) if kind else None)

    def path_of(self, path_id: str | None, label: str | None) -> MapPath | None:
        """The path that a capture belongs to: by the id that the probe matched, else by its label."""
        for path in self.paths:
            if path_id is not None and path.id == path_id:
                return path
        if label:
            owners = [path for path in self.paths if path.owns(label)]
            return max(owners, key=lambda path: len(path.name), default=None)
        return None

    def _list(self, name: str) -> list[Mapping[str, Any]]:
        return [item for item in _items(self.body.get(name)) if isinstance(item, Mapping)]

    def _sites(self) -> dict[str, str]:
        return {str(s.get("id")): f"{s.get('file')}:{s.get('line')}" for s in self._list("sites")}


def _path(item: Mapping[str, Any], sites: Mapping[str, str]) -> MapPath:
    label = item.get("label") if isinstance(item.get("label"), Mapping) else {}
    assert isinstance(label, Mapping)
    buckets = label.get("buckets_effective") or label.get("buckets")
    source = label.get("buckets_from")
    own = [str(site) for site in _items(item.get("sites"))]
    decided = (
        f"{source.get('file')}:{source.get('line')}"
        if isinstance(source, Mapping)
        else sites.get(own[0], "unknown")
        if own
        else "unknown"
    )
    variants = label.get("variants")
    runner, family = str(item.get("runner") or "unknown"), str(item.get("family") or "other")
    return MapPath(
        id=str(item.get("id")),
        name=str(item.get("name") or f"{runner}:{family}"),
        family=family,
        worker=str(item.get("worker") or "unknown"),
        runner=runner,
        backend=str(item.get("backend") or "unknown"),
        reachable=str(item.get("reachable") or "unresolved"),
        trigger=str(item["trigger"]) if item.get("trigger") else None,
        inspectability=str(item.get("inspectability") or "unresolved"),
        variants=tuple(None if v is None else str(v) for v in variants)
        if isinstance(variants, list | tuple)
        else (None,),
        buckets=_whole(buckets),
        clamped_by=str(label["clamped_by"]) if label.get("clamped_by") else None,
        decided_at=decided,
        nested_in=str(item["nested_in"]) if item.get("nested_in") else None,
        depends_on=tuple(str(x) for x in _items(item.get("depends_on_unconfirmed"))),
    )


def _items(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _whole(buckets: object) -> tuple[int, ...] | None:
    """Sizes; None when they are not listed, or not all of them are sizes."""
    if not isinstance(buckets, list | tuple):
        return None
    sizes = tuple(b for b in buckets if isinstance(b, int) and not isinstance(b, bool))
    return sizes if len(sizes) == len(buckets) else None
