"""Arguments that the checkout derives from annotated fields: `name: A[type, Arg(...)] = default`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sgl_graph.analyzer.static.config.declarations import Declaration, Declarations, set_action
from sgl_graph.analyzer.static.config.possibilities import single
from sgl_graph.analyzer.static.config.program import ClassV, FieldV, Frame
from sgl_graph.analyzer.static.config.protocol import Place
from sgl_graph.analyzer.static.config.records import fields_of
from sgl_graph.analyzer.static.config.values import ABSENT, External, ListV, Value

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.config.calls import Calls
    from sgl_graph.analyzer.static.extract.facts import Expression

_SCALARS = {"str", "int", "float", "bool"}
_LISTS = {"List", "list"}


def register_fields(machine: Calls, parser: Value, cls: ClassV, only: list[Value] | None) -> None:
    """Declare one argument for every annotated field that asks for one."""
    declarations: Declarations = single(parser).payload
    for field in fields_of(machine, cls):
        if only is not None and field.name not in only:
            continue
        expression = field.annotation
        if isinstance(expression, list) and expression[0] == "s" and len(expression[2]) > 1:
            declaration = _declare(machine, field, expression[2][0], expression[2][1:])
            if declaration is not None:
                declarations.add(declaration)


def _declare(machine: Calls, field: FieldV, kind: Expression, metadata: list[Expression]) -> Declaration | None:
    words = _metadata(metadata)
    if words is None or words.get("no_cli") == ["v", True]:
        return None
    default = field.default
    if field.factory is not ABSENT:
        default = machine.call(field.factory, [], {})
    evaluate = _evaluator(machine, field)
    name = words.get("cli_name", ["v", None])[1] or "--" + field.name.replace("_", "-")
    aliases = words.get("aliases")
    flags = [name, *(machine.elements(evaluate(aliases)()) or [] if aliases and aliases != ["v", None] else [])]
    place = Place(field.owner.module.module.path, field.line, f"{field.owner.qualname}.{field.name}")
    declaration = Declaration(tuple(flags), field.name, place, default=None if default is ABSENT else default)
    bare_switch = default is ABSENT
    if "action" in words and words["action"] != ["v", None]:
        extra = words.get("action_kwargs")
        keywords = _keywords(evaluate(extra)()) if extra is not None else {}
        keywords["default"] = declaration.default
        set_action(machine, declaration, evaluate(words["action"])(), keywords)
        return declaration
    _shape(declaration, kind, words, evaluate)
    if declaration.action == "store_true" and bare_switch:
        declaration.default = False
    if "nargs" in words and words["nargs"] != ["v", None] and declaration.action == "store":
        declaration.nargs = single(evaluate(words["nargs"])())
    if "const" in words:
        declaration.const = evaluate(words["const"])()
    if "choices" in words and words["choices"] != ["v", None]:
        declaration.choices = evaluate(words["choices"])
    required = words.get("required", ["v", None])[1]
    declaration.required = required is True or (required is None and default is ABSENT)
    return declaration


def _metadata(items: list[Expression]) -> dict[str, Expression] | None:
    """Keywords of the argument's metadata; empty for a bare help text, None when the field is no argument."""
    for item in items:
        if item[0] in ("v", "f") or (item[0] == "b" and item[1] == "+"):
            return {}
        if item[0] == "c":
            words = {a[1]: a[2] for a in item[2] if a[0] == "k"}
            positional = [a for a in item[2] if a[0] not in ("k", "*", "**")]
            callee = item[1][1] if item[1][0] == "n" else item[1][2]
            if callee in ("NS", "Derived"):
                continue
            if positional:
                words.setdefault("help", positional[0])
            return words
    return None


def _evaluator(machine: Calls, field: FieldV) -> Callable[[Expression], Callable[[], Value]]:
    owner = field.owner

    def bind(expression: Expression) -> Callable[[], Value]:
        def run() -> Value:
            frame = Frame(owner.module, None, owner.qualname)
            frame.body_of = owner
            machine.frames.append(frame)
            try:
                return machine.isolated(lambda: machine.evaluate(expression))
            finally:
                machine.frames.pop()

        return run

    return bind


def _keywords(value: Value) -> dict[str, Value]:
    plain = single(value)
    return {str(key): item for key, item in getattr(plain, "items", {}).items()} if plain is not ABSENT else {}


def _shape(declaration: Declaration, kind: Expression, words: dict[str, Expression], evaluate: Any) -> None:
    """Action, converter and choices that follow from the field's type."""
    inner = _unwrap_optional(kind)
    parser = words.get("type_parser")
    if parser is not None and parser != ["v", None]:
        declaration.kind = evaluate(parser)
        return
    name = _head(inner)
    if name == "Literal":
        values = [item[1] for item in inner[2] if item[0] == "v"]
        choices = ListV(list(values))
        declaration.choices = lambda: choices
        scalar = type(values[0]).__name__ if values else "str"
        declaration.kind = _scalar(scalar)
    elif name in _LISTS:
        element = _head(inner[2][0]) if inner[0] == "s" and inner[2] else "str"
        declaration.nargs = "+"
        declaration.kind = _scalar(element)
    elif name == "bool":
        declaration.action = "store_true"
    else:
        declaration.kind = _scalar(name)


def _scalar(name: str) -> Callable[[], Value]:
    path = External(f"builtins.{name if name in _SCALARS and name != 'bool' else 'str'}")
    return lambda: path


def _head(expression: Expression) -> str:
    if expression[0] == "s":
        return _head(expression[1])
    if expression[0] == "a":
        return str(expression[2])
    return str(expression[1]) if expression[0] == "n" else ""


def _unwrap_optional(expression: Expression) -> Expression:
    if expression[0] == "s" and _head(expression) in ("Optional", "Union"):
        inner = [item for item in expression[2] if item != ["v", None]]
        return inner[0] if len(inner) == 1 else expression
    if expression[0] == "b" and expression[1] == "|":
        parts = [part for part in (expression[2], expression[3]) if part != ["v", None]]
        return parts[0] if len(parts) == 1 else expression
    return expression
