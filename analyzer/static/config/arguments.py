"""The command parsed by the declarations that the checkout makes.

Parsing follows `argparse`, with actions and converters of the checkout evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sgl_graph.analyzer.errors import CommandInvalid
from sgl_graph.analyzer.serving_command import is_option
from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.config.declarations import (
    PARSER,
    SUPPRESS,
    Declaration,
    Declarations,
    Rejected,
    declarations_of,
)
from sgl_graph.analyzer.static.config.journal import Raised
from sgl_graph.analyzer.static.config.possibilities import options_of, single, taint
from sgl_graph.analyzer.static.config.program import Bound, ClassV, Instance
from sgl_graph.analyzer.static.config.python_values import Inexact, to_python
from sgl_graph.analyzer.static.config.registry import native
from sgl_graph.analyzer.static.config.values import ABSENT, External, ListV, Value

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.config.calls import Calls

NAMESPACE = External("argparse.Namespace")


@native(f"{PARSER}().parse_args", f"{PARSER}().parse_known_args")
def _parse_args(machine: Calls, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    given = arguments[1] if len(arguments) > 1 else keywords.get("args")
    try:
        tokens = [str(token) for token in to_python(given)]
    except (Inexact, TypeError):
        raise CommandInvalid("the checkout parses something else than the command") from None
    return parse(machine, arguments[0], tokens)


def parse(machine: Calls, parser: Value, tokens: Sequence[str]) -> Instance:
    """The namespace that the declarations make of a command.

    Raises:
        CommandInvalid: an unknown flag, a missing or surplus value, a value outside the choices.
        Rejected: a converter or action of the checkout refuses a value.
    """
    declarations = declarations_of(parser)
    machine.declarations = declarations
    namespace = Instance(NAMESPACE)
    for declaration in declarations.items:
        if (
            declaration.default is not SUPPRESS
            and declaration.dest not in namespace.attrs
            and declaration.action != "help"
        ):
            namespace.attrs[declaration.dest] = declaration.default
    namespace.attrs.update(declarations.defaults)
    position = 0
    while position < len(tokens):
        token = tokens[position]
        if not is_option(token):
            raise CommandInvalid(f"unexpected argument {token}: no flag takes it")
        name, equals, inline = token.partition("=")
        declaration = declarations.by_flag.get(token) or declarations.find(name)
        position += 1
        values = [inline] if equals and token not in declarations.by_flag else []
        if not values:
            end = position
            while end < len(tokens) and not _starts_option(tokens[end]):
                end += 1
            values = _share(declaration, name, list(tokens[position:end]))
            position += len(values)
        elif declaration.takes() == 0:
            raise CommandInvalid(f"{name} takes no value", hint=_declared(declaration))
        _apply(machine, parser, declaration, name, values, namespace)
        if declaration.dest in namespace.attrs and declaration.dest not in profile.IDENTITY_FIELDS:
            cause = frozenset({f"flag:{declaration.dest}"})
            namespace.attrs[declaration.dest] = taint(namespace.attrs[declaration.dest], cause)
        declarations.given[declaration.dest] = name
        declarations.values[declaration.dest] = namespace.attrs.get(declaration.dest, ABSENT)
    for name, text in machine.assumed_fields.items():
        _assume(machine, parser, declarations, name, text, namespace)
    _predict(machine, parser, declarations, namespace)
    for declaration in declarations.items:
        if declaration.required and declaration.dest not in declarations.given:
            raise CommandInvalid(f"the command needs {declaration.flags[0]}", hint=_declared(declaration))
    return namespace


def _assume(
    machine: Calls, parser: Value, declarations: Declarations, name: str, text: str, namespace: Instance
) -> None:
    """A value settled by hand stands where the command gives none, without counting as given."""
    declaration = next((item for item in declarations.items if item.dest == name), None)
    if declaration is None:
        raise CommandInvalid(f"--assume {name}: this release has no such argument")
    if name in declarations.given:
        raise CommandInvalid(f"--assume {name}: the command gives {declarations.given[name]} itself")
    if declaration.takes() == 0:
        namespace.attrs[name] = text.lower() in ("1", "true", "yes")
    else:
        _apply(machine, parser, declaration, f"--assume {name}", text.split(), namespace)


def _predict(machine: Calls, parser: Value, declarations: Declarations, namespace: Instance) -> None:
    """Choices that the serving environment's parser makes stand as predictions where the command leaves them open."""
    cause = frozenset({"package:serving environment"})
    for declaration in declarations.items:
        name = declaration.dest
        text = machine.asked_fields.get(name)
        if (
            text is None
            or name in declarations.given
            or name in machine.assumed_fields
            or declaration.takes() is not None
        ):
            continue
        if declaration.choices() is None or single(namespace.attrs.get(name)) not in (None, "auto"):
            continue
        try:
            _apply(machine, parser, declaration, declaration.flags[0], [text], namespace)
        except (CommandInvalid, Rejected):
            continue
        namespace.attrs[name] = taint(namespace.attrs[name], cause, declaration.place)


def _starts_option(token: str) -> bool:
    return is_option(token) and " " not in token


def _share(declaration: Declaration, name: str, following: list[str]) -> list[str]:
    """The values that belong to an argument."""
    takes = declaration.takes()
    if takes == 0:
        return []
    if takes is None:
        if not following:
            raise CommandInvalid(f"{name} needs a value", hint=_declared(declaration))
        return following[:1]
    if takes == "?":
        return following[:1]
    if type(takes) is int:
        if len(following) < takes:
            raise CommandInvalid(f"{name} needs {takes} values", hint=_declared(declaration))
        return following[:takes]
    if takes == "+" and not following:
        raise CommandInvalid(f"{name} needs at least one value", hint=_declared(declaration))
    return following


def _declared(declaration: Declaration) -> str:
    return f"declared at {declaration.place.file}:{declaration.place.line}"


def _apply(
    machine: Calls, parser: Value, declaration: Declaration, name: str, tokens: list[str], namespace: Instance
) -> None:
    values = [_convert(machine, declaration, name, token) for token in tokens]
    takes = declaration.takes()
    value: Value = ListV(values)
    if takes is None or (takes == "?" and values):
        value = values[0]
    elif takes == "?":
        value = declaration.const
    attrs = namespace.attrs
    action = declaration.action
    if action == "custom" and declaration.handler is not None:
        held = machine.line
        machine.call(
            Bound(_method(machine, declaration.handler), declaration.handler), [parser, namespace, value, name], {}
        )
        machine.line = held
    elif action in ("store_true", "store_false"):
        attrs[declaration.dest] = action == "store_true"
    elif action == "boolean":
        attrs[declaration.dest] = not name.startswith("--no-")
    elif action in ("store_const", "append_const"):
        attrs[declaration.dest] = declaration.const
    elif action in ("append", "extend"):
        before = single(attrs.get(declaration.dest))
        kept = list(before.items) if type(before) is ListV else []
        attrs[declaration.dest] = ListV([*kept, value] if action == "append" or takes is None else [*kept, *values])
    elif action == "count":
        attrs[declaration.dest] = (single(attrs.get(declaration.dest)) or 0) + 1
    elif action in ("help", "version"):
        raise CommandInvalid(f"{name} prints and exits: no server starts")
    else:
        attrs[declaration.dest] = value


def _method(machine: Calls, handler: Instance) -> Value:
    assert type(handler.cls) is ClassV
    return machine.inherited(handler.cls, "__call__")


def _convert(machine: Calls, declaration: Declaration, name: str, token: str) -> Value:
    kind = declaration.kind()
    value: Value = token
    if kind is not None and single(kind) != External("builtins.str"):
        try:
            value = machine.call(kind, [token], {})
        except Raised as raised:
            if raised.explicit:
                raise Rejected(f"{name}: {_text(raised)}", raised.place) from None
            wanted = getattr(single(kind), "path", "").rsplit(".", 1)[-1] or "such"
            raise CommandInvalid(f"{name}: {token!r} is no {wanted} value", hint=_declared(declaration)) from None
    choices = declaration.choices()
    if choices is not None:
        _check_choice(machine, declaration, name, value, choices)
    return value


def _text(raised: Raised) -> str:
    from sgl_graph.analyzer.static.config.exceptions import describe

    return describe(raised.value)


def _check_choice(machine: Calls, declaration: Declaration, name: str, value: Value, choices: Value) -> None:
    plain = single(value)
    items = machine.elements(choices)
    if items is None or plain is ABSENT:
        return
    allowed: list[Any] = []
    for item in items:
        options, open_ = options_of(item)
        if open_ or not all(isinstance(option, (str, int, float)) for option in options):
            return
        allowed += options
    if plain in allowed:
        return
    shown = ", ".join(str(item) for item in sorted(map(str, dict.fromkeys(allowed))))
    raise CommandInvalid(f"{name}: {plain!r} is not one of {shown}", hint=_declared(declaration))


def expand_config(tokens: Sequence[str], declared: Declarations | None, read: Callable[[str], Any]) -> list[str]:
    """The command with the file of `--config` merged in before its own arguments, so that those win.

    Raises:
        CommandInvalid: the file cannot be read or does not hold a mapping.
    """
    tokens = list(tokens)
    if "--config" not in tokens:
        return tokens
    at = tokens.index("--config")
    if at + 1 >= len(tokens):
        raise CommandInvalid("--config needs a file")
    path = tokens[at + 1]
    data = read(path)
    if data is None:
        raise CommandInvalid(f"--config {path}: no such file, or not YAML")
    if not isinstance(data, dict):
        raise CommandInvalid(f"--config {path}: it must hold a mapping at its top")
    merged: list[str] = []
    for key, value in data.items():
        flag = "--" + str(key).replace("_", "-")
        if isinstance(value, bool):
            declaration = declared.by_flag.get(flag) if declared is not None else None
            if declaration is not None and declaration.takes() != 0:
                merged += [flag, str(value).lower()]
            elif value:
                merged.append(flag)
        elif isinstance(value, list):
            merged += [flag, *(str(item) for item in value)]
        elif isinstance(value, dict):
            import json

            merged += [flag, json.dumps(value)]
        elif value is not None:
            merged += [flag, str(value)]
    return [*merged, *tokens[:at], *tokens[at + 2 :]]
