"""Record classes (dataclasses, structs, named tuples) and the introspection that the checkout does on types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.config.possibilities import deps_of, fuzzy, options_of, single, taint, unknown
from sgl_graph.analyzer.static.config.program import Bound, ClassV, FieldV, Frame, Instance, Thunk
from sgl_graph.analyzer.static.config.python_values import hashable
from sgl_graph.analyzer.static.config.registry import CALLS, native
from sgl_graph.analyzer.static.config.values import ABSENT, NO_DEPS, DictV, External, Generic, ListV, SetV, Value

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.config.classes import Classes
    from sgl_graph.analyzer.static.config.machine import Machine

_MISSING = External("dataclasses.MISSING")
_NO_DEFAULT = External("msgspec.NODEFAULT")
_FIELD = External("dataclasses.field()")


def fields_of(machine: Classes, cls: ClassV) -> list[FieldV]:
    """Fields of a record class, those of its bases first."""
    if cls.fields is None:
        found: dict[str, FieldV] = {}
        for item in reversed(machine.ancestry(cls)):
            if type(item) is not ClassV:
                continue
            own = item.fields if item.fields is not None and item is not cls else _own_fields(machine, item)
            for field in own:
                found[field.name] = field
        cls.fields = list(found.values())
    return cls.fields


def _own_fields(machine: Classes, cls: ClassV) -> list[FieldV]:
    fields: list[FieldV] = []
    if cls.facts is None:
        return fields
    frame = Frame(cls.module, cls.frame if cls.frame is not cls.module.frame else None, cls.qualname)
    frame.body_of = cls
    machine.frames.append(frame)
    held = machine.line
    try:
        for statement in cls.facts.body:
            if statement[0] != ":" or statement[2][0] != "n" or _is_class_variable(statement[3]):
                continue
            field = FieldV(statement[2][1], cls, statement[1], statement[3])
            if statement[4] is not None:
                machine.line = statement[1]
                default = machine.isolated(lambda expression=statement[4]: machine.evaluate(expression))  # type: ignore[misc]
                _set_default(field, default)
            fields.append(field)
    finally:
        machine.frames.pop()
        machine.line = held
    return fields


def _is_class_variable(annotation: list[object]) -> bool:
    head = annotation[1] if annotation[0] == "s" else annotation
    return isinstance(head, list) and (head[-1] == "ClassVar" or (head[0] == "a" and head[2] == "ClassVar"))


def _set_default(field: FieldV, default: Value) -> None:
    plain = single(default)
    if type(plain) is Instance and plain.cls == _FIELD:
        field.default = plain.attrs.get("default", ABSENT)
        field.factory = plain.attrs.get("default_factory", ABSENT)
        field.init = plain.attrs.get("init", True) is True
    else:
        field.default = default


def fill(machine: Classes, instance: Instance, arguments: list[Value], keywords: dict[str, Value]) -> None:
    """What the generated `__init__` of a record does."""
    assert type(instance.cls) is ClassV
    rest = dict(keywords)
    fields = fields_of(machine, instance.cls)
    position = 0
    for field in fields:
        given: Value = ABSENT
        if field.init and position < len(arguments):
            given = arguments[position]
            position += 1
        elif field.init and field.name in rest:
            given = rest.pop(field.name)
        if given is ABSENT or (type(given).__name__ == "Fuzzy" and ABSENT in options_of(given)[0]):
            default = _default_of(machine, field)
            if given is not ABSENT:
                kept = [option for option in options_of(given)[0] if option is not ABSENT]
                default = fuzzy([*kept, default], options_of(given)[1], deps_of(given))
            given = default
        if given is ABSENT:
            raise machine.fail("TypeError", f"{instance.cls.name}: missing field {field.name}")
        instance.attrs[field.name] = given
    if rest or position < len(arguments):
        raise machine.fail("TypeError", f"{instance.cls.name}: unexpected arguments {sorted(rest)}")
    hook = machine.inherited(instance.cls, "__post_init__")
    if hook is not ABSENT:
        machine.call(Bound(hook, instance), [], {})


def _default_of(machine: Classes, field: FieldV) -> Value:
    if field.factory is not ABSENT:
        return machine.call(field.factory, [], {})
    default = field.default
    # A mutable default of a struct is copied for every object.
    if type(default) is ListV:
        return ListV(list(default.items), default.opaque)
    if type(default) is DictV:
        return DictV(dict(default.items), default.opaque)
    if type(default) is SetV:
        return SetV(dict(default.items), default.opaque)
    return default


def fill_foreign(
    machine: Classes, instance: Instance, base: External, arguments: list[Value], keywords: dict[str, Value]
) -> None:
    """What the `__init__` of a base class outside the checkout does."""
    from sgl_graph.analyzer.static.config.exceptions import external_class

    if base.path in ("builtins.dict", "collections.OrderedDict", "collections.UserDict"):
        table = DictV({})
        machine.call(machine.get(table, "update"), arguments, keywords)
        instance.payload = table
    elif base.path in ("builtins.list", "collections.UserList"):
        instance.payload = ListV(machine.elements(arguments[0]) or [] if arguments else [])
    elif external_class(base) is not None:
        instance.attrs["args"] = tuple(arguments)
    elif f"{base.path}.__init__" in CALLS:
        CALLS[f"{base.path}.__init__"](machine, [instance, *arguments], keywords)
    elif base.path.split(".")[0] in ("builtins", "abc", "typing", "enum"):
        return
    else:
        instance.opaque = frozenset([f"package:{base.path.split('.')[0]}"])


# -- what the checkout asks about records


def _field_object(machine: Machine, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    attrs = {name: value for name, value in keywords.items() if name in ("default", "default_factory", "init")}
    if arguments:
        attrs["default"] = arguments[0]
    return Instance(_FIELD, attrs)


native("dataclasses.field", "msgspec.field", "pydantic.Field")(_field_object)


def _class_of(value: Value) -> Value:
    plain = single(value)
    return plain.cls if type(plain) is Instance else plain


def _describe_fields(missing: External, path: str) -> None:
    def call(machine: Machine, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        cls = _class_of(arguments[0])
        if type(cls) is not ClassV:
            return unknown(deps_of(arguments[0]), machine.place())
        objects: Classes = machine  # type: ignore[assignment]
        result: list[Value] = []
        for field in fields_of(objects, cls):
            attrs: dict[str, Value] = {
                "name": field.name,
                "default": missing if field.default is ABSENT else field.default,
                "default_factory": missing if field.factory is ABSENT else field.factory,
                "init": field.init,
                "required": field.default is ABSENT and field.factory is ABSENT,
                "type": Thunk(lambda item=field: type_of(objects, item)),  # type: ignore[misc]
            }
            result.append(Instance(External(f"{path}.Field"), attrs))
        return tuple(result)

    native(path)(call)


_describe_fields(_MISSING, "dataclasses.fields")
_describe_fields(_NO_DEFAULT, "msgspec.structs.fields")


def type_of(machine: Classes, field: FieldV) -> Value:
    """The type that a field's annotation names."""
    if isinstance(field.annotation, list):
        return machine.annotation(field.owner, field.annotation)
    return field.annotation


@native("typing.get_type_hints", "typing_extensions.get_type_hints")
def _type_hints(machine: Machine, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    cls = _class_of(arguments[0])
    if type(cls) is not ClassV:
        return unknown(deps_of(arguments[0]), machine.place())
    objects: Classes = machine  # type: ignore[assignment]
    hints: dict[str, Value] = {}
    for item in reversed(objects.ancestry(cls)):
        if type(item) is not ClassV:
            continue
        if item.facts is None:
            hints.update({field.name: type_of(objects, field) for field in fields_of(objects, item)})
            continue
        cached = item.attrs.get("__hints__")
        if cached is None:
            cached = item.attrs["__hints__"] = objects.annotations(item)
        hints.update(cached.items)
    return DictV(hints)


@native("typing.get_origin", "typing_extensions.get_origin")
def _origin(machine: Machine, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    value = single(arguments[0])
    if type(value) is not Generic:
        return None if value is not ABSENT else unknown(deps_of(arguments[0]))
    if type(value.origin) is not External:
        return value.origin
    aliases = {
        "typing.Optional": "typing.Union", "typing.List": "builtins.list", "typing.Dict": "builtins.dict",
        "typing.Tuple": "builtins.tuple", "typing.Set": "builtins.set", "typing.Type": "builtins.type",
        "typing.Sequence": "collections.abc.Sequence", "typing.Callable": "collections.abc.Callable",
        "typing_extensions.Annotated": "typing.Annotated", "typing_extensions.Literal": "typing.Literal",
    }  # fmt: skip
    return External(aliases.get(value.origin.path, value.origin.path))


@native("typing.get_args", "typing_extensions.get_args")
def _arguments(machine: Machine, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    value = single(arguments[0])
    if type(value) is not Generic:
        return () if value is not ABSENT else unknown(deps_of(arguments[0]))
    if value.origin == External("typing.Optional"):
        return (*value.arguments, External("builtins.NoneType"))
    return tuple(External("builtins.NoneType") if item is None else item for item in value.arguments)


@native("dataclasses.is_dataclass")
def _is_dataclass(machine: Machine, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    cls = _class_of(arguments[0])
    if type(cls) is ClassV:
        objects: Classes = machine  # type: ignore[assignment]
        structs = any(type(c) is External and c.path.startswith("msgspec") for c in objects.ancestry(cls))
        return objects.kind_of(cls) == "record" and not structs
    return unknown(deps_of(arguments[0])) if cls is ABSENT else False


@native("dataclasses.replace", "msgspec.structs.replace", "copy.replace")
def _replace(machine: Machine, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    options, open_ = options_of(arguments[0])
    made: list[Value] = []
    for option in options:
        if type(option) is not Instance or type(option.cls) is not ClassV:
            open_ = True
            continue
        attrs = dict(option.attrs)
        for name, value in keywords.items():
            if type(value).__name__ == "Fuzzy" and ABSENT in value.options:
                kept = [item for item in value.options if item is not ABSENT]
                value = fuzzy([*kept, attrs.get(name)], value.open, value.deps, value.place)
            attrs[name] = taint(value, machine.control, machine.place())
        made.append(Instance(option.cls, attrs, option.opaque))
    return fuzzy(made, open_, deps_of(arguments[0]), machine.place())


@native("dataclasses.asdict", "msgspec.structs.asdict", "msgspec.to_builtins")
def _as_dict(machine: Machine, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    plain = single(arguments[0])
    if type(plain) is not Instance or type(plain.cls) is not ClassV:
        return unknown(deps_of(arguments[0]), machine.place())
    objects: Classes = machine  # type: ignore[assignment]
    names = [field.name for field in fields_of(objects, plain.cls)]
    return taint(DictV({name: plain.attrs.get(name, None) for name in names}), deps_of(arguments[0]))


@native("msgspec.defstruct", "dataclasses.make_dataclass")
def _define_struct(machine: Machine, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    objects: Classes = machine  # type: ignore[assignment]
    name = single(arguments[0])
    module = machine.frames[-1].module
    cls = ClassV(module, None, str(name), module.frame)
    cls.kind = "record"
    cls.base_values = [External("msgspec.Struct")]
    namespace = single(keywords.get("namespace", DictV({})))
    if type(namespace) is DictV:
        cls.attrs.update({str(key): value for key, value in namespace.items.items()})
    places = {}
    source = cls.attrs.get("_NAMESPACES")
    for item in objects.elements(source) or [] if source is not None else []:
        if type(single(item)) is ClassV:
            places.update({field.name: field for field in fields_of(objects, single(item))})
    cls.fields = []
    for item in objects.elements(arguments[1]) or []:
        parts = objects.elements(item) or []
        label = single(parts[0]) if parts else ABSENT
        if not isinstance(label, str):
            continue
        declared = places.get(label)
        field = FieldV(label, declared.owner if declared else cls, declared.line if declared else machine.line, None)
        field.annotation = declared.annotation if declared else (parts[1] if len(parts) > 1 else unknown())
        if len(parts) > 2:
            _set_default(field, parts[2])
        cls.fields.append(field)
    return cls


# -- copies


@native("copy.copy")
def _copy(machine: Machine, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    return fuzzy(
        [_shallow(option) for option in options_of(arguments[0])[0]],
        options_of(arguments[0])[1],
        deps_of(arguments[0]),
        machine.place(),
    )


def _shallow(value: Value) -> Value:
    kind = type(value)
    if kind is Instance and not _is_member(value):
        made = Instance(value.cls, dict(value.attrs), value.opaque)
        made.payload = value.payload
        return made
    if kind is ListV:
        return ListV(list(value.items), value.opaque)
    if kind is DictV:
        return DictV(dict(value.items), value.opaque, value.factory)
    if kind is SetV:
        return SetV(dict(value.items), value.opaque)
    return value


@native("copy.deepcopy")
def _deepcopy(machine: Machine, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    return deep_copy(arguments[0], {})


def deep_copy(value: Value, seen: dict[int, Value]) -> Value:
    """A copy that shares no container or object with the original."""
    kind = type(value)
    if kind in (str, int, float, bool, type(None)):
        return value
    if id(value) in seen:
        return seen[id(value)]
    if kind is tuple:
        return tuple(deep_copy(item, seen) for item in value)
    made = _shallow(value)
    if kind.__name__ == "Fuzzy":
        return fuzzy((deep_copy(item, seen) for item in value.options), value.open, value.deps, value.place)
    if made is value:
        return value
    seen[id(value)] = made
    if kind is ListV:
        made.items = [item if type(item).__name__ == "Alternatives" else deep_copy(item, seen) for item in made.items]
    elif kind is DictV:
        made.items = {key: deep_copy(item, seen) for key, item in made.items.items()}
    elif kind is Instance:
        made.attrs = {name: deep_copy(item, seen) for name, item in made.attrs.items()}
        made.payload = deep_copy(made.payload, seen) if type(made.payload) in (DictV, ListV) else made.payload
    return made


def _is_member(value: Instance) -> bool:
    return "_name_" in value.attrs


__all__ = ["NO_DEPS", "deep_copy", "fields_of", "fill", "fill_foreign", "hashable", "type_of"]
