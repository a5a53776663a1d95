"""Facts back to source-like text, for guards and callees in reports."""

from __future__ import annotations

from sgl_graph.analyzer.static.extract.facts import Expression

_LONGEST = 160


def render(expression: Expression | None, limit: int = _LONGEST) -> str:
    """Source-like text of an expression on one line, cut at `limit` characters."""
    text = _render(expression)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _render(e: Expression | None) -> str:
    if e is None:
        return ""
    kind = e[0]
    if kind == "n":
        return str(e[1])
    if kind == "v":
        return repr(e[1])
    if kind == "a":
        return f"{_render(e[1])}.{e[2]}"
    if kind == "c":
        return f"{_render(e[1])}({', '.join(_argument(x) for x in e[2])})"
    if kind == "s":
        return f"{_render(e[1])}[{', '.join(_render(x) for x in e[2])}]"
    if kind == "i":
        return f"{_render(e[2])} if {_render(e[1])} else {_render(e[3])}"
    if kind == "bo":
        return f"{_grouped(e[2], e[1])} {e[1]} {_grouped(e[3], e[1])}"
    if kind == "u":
        return f"not {_grouped(e[2], 'not')}" if e[1] == "not" else f"{e[1]}{_render(e[2])}"
    if kind == "b":
        return f"{_render(e[2])} {e[1]} {_render(e[3])}"
    if kind == "cmp":
        return _render(e[1]) + "".join(f" {op} {_render(right)}" for op, right in e[2])
    if kind in ("t", "L", "S"):
        left, right = {"t": ("(", ")"), "L": ("[", "]"), "S": ("{", "}")}[kind]
        return f"{left}{', '.join(_render(x) for x in e[1])}{right}"
    if kind == "d":
        return "{" + ", ".join(f"{_render(k)}: {_render(v)}" if k else f"**{_render(v)}" for k, v in e[1]) + "}"
    if kind == "f":
        return 'f"' + "".join(str(p[1]) if p[0] == "v" else "{" + _render(p) + "}" for p in e[1]) + '"'
    if kind == "w":
        return f"({e[1]} := {_render(e[2])})"
    if kind == "C":
        loops = "".join(
            f" for {_render(t)} in {_render(i)}" + "".join(f" if {_render(x)}" for x in tests) for t, i, tests in e[3]
        )
        return f"{{{': '.join(_render(x) for x in e[2])}{loops}}}"
    if kind == "aw":
        return f"await {_render(e[1])}"
    if kind == "*":
        return f"*{_render(e[1])}"
    if kind == "l":
        return "lambda"
    if kind == "sl":
        return ":".join(_render(x) for x in e[1:3])
    return "…"


def _argument(e: Expression) -> str:
    if e[0] == "k":
        return f"{e[1]}={_render(e[2])}"
    if e[0] in ("*", "**"):
        return f"{e[0]}{_render(e[1])}"
    return _render(e)


def _grouped(e: Expression, outer: str) -> str:
    text = _render(e)
    return f"({text})" if e[0] in ("bo", "i") and not (e[0] == "bo" and e[1] == outer) else text
