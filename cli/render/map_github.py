"""A path map's gaps as GitHub workflow annotations."""

from __future__ import annotations

from sgl_graph.analyzer.records.pathmap import PathMap


def render(made: PathMap) -> str:
    """One annotation a gap, at its first primitive where it has one."""
    sites = {site.id: site for site in made.sites}
    lines = []
    if made.starts.value == "no":
        at = f"file={_property(made.starts.file)},line={made.starts.line}," if made.starts.file else ""
        lines.append(f"::error {at}title=SGG060::{_message(made.starts.why)}")
    for gap in made.gaps:
        if gap.code == "SGG060":
            continue
        first = next((sites[name] for name in gap.sites if name in sites), None)
        place = f"file={_property(first.file)},line={first.line}," if first is not None else ""
        level = "warning" if gap.severity == "material" else "notice"
        lines.append(f"::{level} {place}title={gap.code or 'gap'}::{_message(gap.text)}")
    return "\n".join(lines) + "\n" if lines else "::notice title=sgl-graph::no gaps\n"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str | None) -> str:
    return _message(text or "").replace(":", "%3A").replace(",", "%2C")
