"""Objects under operators: truth, equality, arithmetic, membership, subscripts and iteration, and what they are instances of."""

from __future__ import annotations

from sgl_graph.analyzer.static.config import comparison, containers, operators, python_values
from sgl_graph.analyzer.static.config.attributes import Attributes
from sgl_graph.analyzer.static.config.model import is_of_class
from sgl_graph.analyzer.static.config.possibilities import deps_of, single, unknown
from sgl_graph.analyzer.static.config.program import Bound, ClassV, FunctionV, Instance, ModuleV
from sgl_graph.analyzer.static.config.values import ABSENT, NO_DEPS, Deps, DictV, External, Generic, ListV, SetV, Value

_PYTHON_TYPES = {
    "builtins.int": (int,), "builtins.str": (str,), "builtins.bool": (bool,), "builtins.float": (float,),
    "builtins.tuple": (tuple,), "builtins.bytes": (bytes,), "builtins.list": (ListV,), "builtins.dict": (DictV,),
    "builtins.set": (SetV,), "builtins.frozenset": (frozenset,), "builtins.range": (range,),
    "builtins.NoneType": (type(None),), "types.NoneType": (type(None),), "types.FunctionType": (FunctionV,),
    "types.ModuleType": (ModuleV,), "builtins.type": (ClassV,),
}  # fmt: skip
_ABSTRACT = {
    "collections.abc.Sequence": (ListV, tuple, str, range), "typing.Sequence": (ListV, tuple, str, range),
    "collections.abc.Mapping": (DictV,), "typing.Mapping": (DictV,), "typing.Dict": (DictV,), "typing.List": (ListV,),
    "collections.abc.Iterable": (ListV, tuple, str, range, DictV, SetV), "collections.abc.Callable": (FunctionV, Bound),
    "collections.OrderedDict": (), "collections.defaultdict": (), "pathlib.Path": (), "numbers.Number": (int, float),
    "numbers.Integral": (int,), "numbers.Real": (int, float),
}  # fmt: skip


class Objects(Attributes):
    """The part of the evaluator that knows what objects answer."""

    def truth_of_object(self, value: Instance) -> tuple[bool | None, Deps]:
        """Truth of an object: `__bool__`, `__len__`, the payload of a mixed enum member, else true."""
        if type(value.cls) is not ClassV:
            return True, NO_DEPS
        if self.kind_of(value.cls) == "enum":
            mixed = python_values.is_mixed(value)
            return (bool(value.payload) if mixed and isinstance(value.payload, (int, str)) else True), NO_DEPS
        for name in ("__bool__", "__len__"):
            result = self.call_method(value, name, [])
            if result is not ABSENT:
                return comparison.truth(self, result)
        if type(value.payload) in (DictV, ListV):
            return comparison.truth(self, value.payload)
        return True, NO_DEPS

    def equal_objects(self, a: Value, b: Value) -> tuple[bool | None, Deps]:
        """Equality where one side is an object."""
        left, right = _plain_member(a), _plain_member(b)
        if left is not a or right is not b:
            if type(left) is not Instance and type(right) is not Instance:
                return comparison.equal(self, left, right)
            return False, NO_DEPS
        if type(a) is Instance and type(b) is Instance and a.cls is b.cls and type(a.cls) is ClassV:
            if self.kind_of(a.cls) == "enum":
                return a is b, NO_DEPS
            if self.kind_of(a.cls) == "record":
                return self._equal_records(a, b)
        for this, other in ((a, b), (b, a)):
            if type(this) is Instance and type(this.cls) is ClassV:
                result = self.call_method(this, "__eq__", [other])
                if result is not ABSENT and result != External("builtins.NotImplemented"):
                    return comparison.truth(self, result)
            elif type(this) is Instance:
                return None, this.opaque or NO_DEPS
        return False, NO_DEPS

    def _equal_records(self, a: Instance, b: Instance) -> tuple[bool | None, Deps]:
        result: bool | None = True
        deps = NO_DEPS
        for name in dict.fromkeys([*a.attrs, *b.attrs]):
            verdict, more = comparison.compare(self, "==", a.attrs.get(name, ABSENT), b.attrs.get(name, ABSENT))
            deps |= more
            if verdict is False:
                return False, deps
            if verdict is None:
                result = None
        return result, deps

    def binary_objects(self, op: str, a: Value, b: Value) -> Value:
        """A binary operator where one side is an object; ABSENT when it defines none."""
        left, right = _plain_member(a), _plain_member(b)
        if (left is not a or right is not b) and type(left) is not Instance and type(right) is not Instance:
            return operators.binary(self, op, left, right)
        name = {"+": "add", "-": "sub", "*": "mul", "//": "floordiv", "|": "or", "&": "and"}.get(op)
        if name is not None and type(a) is Instance:
            return self.call_method(a, f"__{name}__", [b])
        return ABSENT

    def contains_object(self, container: Instance, item: Value) -> tuple[bool | None, Deps]:
        """`item in container` for an object."""
        result = self.call_method(container, "__contains__", [item])
        if result is not ABSENT:
            return comparison.truth(self, result)
        if type(container.payload) in (DictV, ListV):
            return comparison.contains(self, container.payload, item)
        return None, container.opaque or NO_DEPS

    def subscript_object(self, value: Instance, index: Value) -> Value:
        """`value[index]` for an object."""
        result = self.call_method(value, "__getitem__", [index])
        if result is not ABSENT:
            return result
        if type(value.payload) in (DictV, ListV):
            return containers.subscript(self, value.payload, index)
        if type(value.cls) is ClassV and self.kind_of(value.cls) == "record":
            names = [field.name for field in self.record_fields(value.cls)]
            plain = single(index)
            if type(plain) is int and -len(names) <= plain < len(names):
                return value.attrs.get(names[plain], unknown())
        return unknown(value.opaque or ["class"], self.place())

    def subscript_type(self, value: Value, index: Value) -> Value:
        """`List[int]`, `Enum["NAME"]`, `os.environ["NAME"]`."""
        if type(value) is ClassV and self.kind_of(value) == "enum":
            name = single(index)
            found = self.members(value).get(name, ABSENT) if isinstance(name, str) else ABSENT
            if found is ABSENT and name is not ABSENT:
                raise self.fail("KeyError", str(name))
            return unknown(deps_of(index)) if found is ABSENT else found
        if type(value) is External and value.path.split(".")[0] not in (
            "typing",
            "typing_extensions",
            "builtins",
            "collections",
        ):
            return unknown([f"package:{value.path.split('.')[0]}"], self.place())
        return Generic(value, index if type(index) is tuple else (index,))

    def iterate_object(self, value: Value) -> list[Value] | None:
        if type(value) is ClassV and self.kind_of(value) == "enum":
            seen: list[Value] = []
            for member in self.members(value).values():
                if not any(member is other for other in seen):
                    seen.append(member)
            return seen
        if type(value) is Instance:
            if type(value.payload) in (DictV, ListV):
                return self.runs(value.payload)
            if type(value.cls) is ClassV:
                result = self.call_method(value, "__iter__", [])
                if result is not ABSENT:
                    return self.runs(result)
                if any(c == External("typing.NamedTuple") for c in self.ancestry(value.cls)):
                    return [value.attrs.get(field.name, unknown()) for field in self.record_fields(value.cls)]
        return None

    def is_instance(self, value: Value, kind: Value) -> Value:
        def work(item: Value, cls: Value) -> Value:
            verdict = self._is_instance(item, cls)
            return unknown(deps_of(value) | deps_of(kind), self.place()) if verdict is None else verdict

        return operators.lift(self, work, value, kind)

    def _is_instance(self, value: Value, kind: Value) -> bool | None:
        if type(kind) is tuple:
            found = [self._is_instance(value, single(item)) for item in kind]
            return True if True in found else None if None in found else False
        if type(kind) is Generic:
            if kind.origin == External("types.UnionType"):
                return self._is_instance(value, kind.arguments)
            return self._is_instance(value, kind.origin)
        if kind is None:
            return value is None
        if type(kind) is ClassV:
            if type(value) is Instance and is_of_class(value, self.class_attribute(kind, "model_type")):
                return True
            if type(value) is Instance:
                return any(item is kind for item in self.ancestry(value.cls)) or (
                    None if type(value.cls) is External and value.opaque is not None else False
                )
            return False
        if type(kind) is not External:
            return None
        if kind.path == "builtins.object":
            return True
        if kind.path in _PYTHON_TYPES or kind.path in _ABSTRACT:
            return self._is_python(value, kind)
        if type(value) is Instance:
            if any(item == kind for item in self.ancestry(value.cls)):
                return True
            foreign = any(type(item) is External and not self.is_closed(item) for item in self.ancestry(value.cls))
            return None if foreign else False
        if type(value) is External:
            return None
        return False

    def _is_python(self, value: Value, kind: External) -> bool | None:
        types: tuple[type, ...] = _PYTHON_TYPES.get(kind.path) or _ABSTRACT.get(kind.path, ())
        if kind.path == "builtins.int" and type(value) is bool:
            return True
        if type(value) is External:
            return True if kind.path == "builtins.type" and value.path.rsplit(".", 1)[-1][:1].isupper() else None
        if type(value) is Instance:
            if type(value.payload) in types or any(item == kind for item in self.ancestry(value.cls)):
                return True
            return isinstance(value.payload, types) and python_values.is_mixed(value)
        return type(value) in types


def _plain_member(value: Value) -> Value:
    if type(value) is Instance and python_values.is_mixed(value) and isinstance(value.payload, (str, int)):
        return value.payload
    return value
