"""Classes: definition, inheritance, bodies evaluated on demand, enumerations and annotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sgl_graph.analyzer.static.config import python_values
from sgl_graph.analyzer.static.config.journal import Raised
from sgl_graph.analyzer.static.config.machine import Unsupported, bound_names
from sgl_graph.analyzer.static.config.possibilities import single, unknown
from sgl_graph.analyzer.static.config.program import Bound, ClassV, Frame, Instance, Partial
from sgl_graph.analyzer.static.config.statements import Statements
from sgl_graph.analyzer.static.config.values import ABSENT, DictV, External, Generic, Value
from sgl_graph.analyzer.static.extract import facts as f
from sgl_graph.analyzer.static.extract.unasked import EVERY

_ENUMS = {"enum.Enum", "enum.IntEnum", "enum.StrEnum", "enum.Flag", "enum.IntFlag"}
_MIXED_ENUMS = {"enum.IntEnum", "enum.StrEnum", "builtins.str", "builtins.int", "enum.IntFlag"}
_RECORDS = {"msgspec.Struct", "typing.NamedTuple", "pydantic.BaseModel"}


class Classes(Statements):
    """The part of the evaluator that knows classes."""

    def define_class(self, index: int, frame: Frame) -> Value:
        facts = frame.module.module.facts.classes[index]
        cls: Value = ClassV(frame.module, facts, facts.name, frame)
        for decorator in reversed(facts.decorators):
            function = self.evaluate(decorator)
            plain = single(function)
            if type(plain) is External or type(plain) is Partial:
                continue  # dataclass and the like are recognised by name, see `kind_of`
            try:
                made = self.call(function, [cls], {})
            except (Raised, Unsupported):
                continue
            if type(single(made)) is ClassV:
                cls = single(made)
        return cls

    def bases(self, cls: ClassV) -> list[Value]:
        """Base classes as values."""
        if cls.base_values is None:
            cls.base_values = []
            if cls.facts is not None and cls.frame is not None:
                frame = cls.frame

                def work() -> None:
                    self.frames.append(frame)
                    try:
                        for expression in cls.facts.bases if cls.facts else ():
                            base = single(self.evaluate(expression))
                            if type(base) is Generic:
                                base = base.origin
                            if type(base) in (ClassV, External):
                                assert cls.base_values is not None
                                cls.base_values.append(base)
                    finally:
                        self.frames.pop()

                self.isolated(work)
        return cls.base_values

    def ancestry(self, cls: Value) -> list[Value]:
        """The class and its bases in the order of attribute lookup."""
        if type(cls) is not ClassV:
            return [cls]
        if cls.mro is None:
            cls.mro = [cls]
            lines = [self.ancestry(base) for base in self.bases(cls)]
            cls.mro = [cls, *_linearize([*lines, self.bases(cls)])]
        return cls.mro

    def kind_of(self, cls: ClassV) -> str:
        """`record`, `enum` or `plain`."""
        if cls.kind is None:
            cls.kind = "plain"
            paths = {item.path for item in self.ancestry(cls) if type(item) is External}
            if paths & _ENUMS:
                cls.kind = "enum"
            elif paths & _RECORDS or any(self._is_dataclass(c) for c in self.ancestry(cls) if type(c) is ClassV):
                cls.kind = "record"
        return cls.kind

    def _is_dataclass(self, cls: ClassV) -> bool:
        if cls.facts is None:
            return cls.fields is not None
        for decorator in cls.facts.decorators:
            while decorator[0] == "c":
                decorator = decorator[1]
            name = decorator[2] if decorator[0] == "a" else decorator[1] if decorator[0] == "n" else ""
            if name == "dataclass":
                return True
        return False

    def class_attribute(self, cls: ClassV, name: str) -> Value:
        self.project.sought.add(name)
        if name in cls.attrs:
            return self.force(cls.attrs, name)
        if cls.statements is None:
            cls.statements = self._index(cls)
        found = cls.statements.get(name)
        if not found:
            return ABSENT
        cls.attrs[name] = unknown(["circular"])
        self.isolated(lambda: self._run_class_statements(cls, name, found))
        value = cls.attrs.get(name, ABSENT)
        if type(value) is Instance and type(value.cls) is ClassV:
            hook = self.inherited(value.cls, "__set_name__")
            if hook is not ABSENT:
                # A module may forbid later naming once its classes are made; this class is made late, on demand.
                self.asserting = False
                try:
                    self.isolated(lambda: self.call(Bound(hook, value), [cls, name], {}))
                finally:
                    self.asserting = True
        return value

    def _run_class_statements(self, cls: ClassV, name: str, statements: Sequence[f.Statement]) -> None:
        frame = Frame(cls.module, cls.frame if cls.frame is not cls.module.frame else None, cls.qualname)
        frame.body_of = cls
        self.frames.append(frame)
        try:
            self.execute(statements)
        except (Raised, Unsupported, RecursionError):
            cls.attrs[name] = unknown([f"name:{cls.name}.{name}"], self.place())
        finally:
            self.frames.pop()

    def _index(self, cls: ClassV) -> dict[str, list[f.Statement]]:
        index: dict[str, list[f.Statement]] = {}
        if cls.facts is None:
            return index
        facts = cls.module.module.facts
        for statement in cls.facts.body:
            if statement[0] == "def":
                names = [facts.functions[statement[2]].name]
            elif statement[0] == "class":
                names = [facts.classes[statement[2]].name]
            elif statement[0] == ":" and statement[4] is None:
                continue
            else:
                names = bound_names(statement)
            for name in names:
                index.setdefault(name, []).append(statement)
        return index

    def inherited(self, cls: ClassV, name: str) -> Value:
        """An attribute of a class or of its bases inside the checkout."""
        for item in self.ancestry(cls):
            if type(item) is ClassV:
                found = self.class_attribute(item, name)
                if found is not ABSENT:
                    return found
        return ABSENT

    def class_names(self, cls: ClassV) -> DictV:
        """`vars(cls)`."""
        cls.module.module.asked.add(EVERY)
        if cls.statements is None:
            cls.statements = self._index(cls)
        names = dict.fromkeys([*cls.statements, *cls.attrs])
        return DictV({name: self.class_attribute(cls, name) for name in names})

    def members(self, cls: ClassV) -> dict[str, Value]:
        """Members of an enumeration, in order."""
        if cls.members is None:
            cls.members = {}
            for item in reversed(self.ancestry(cls)):
                if type(item) is ClassV and item.facts is not None:
                    self.isolated(lambda owner=item: self._fill_members(cls, owner))  # type: ignore[misc]
        return cls.members

    def _fill_members(self, cls: ClassV, owner: ClassV) -> None:
        assert cls.members is not None and owner.facts is not None
        mixed = any(type(c) is External and c.path in _MIXED_ENUMS for c in self.ancestry(cls))
        text = any(type(c) is External and c.path in ("enum.StrEnum", "builtins.str") for c in self.ancestry(cls))
        last = 0
        frame = Frame(owner.module, owner.frame if owner.frame is not owner.module.frame else None, owner.qualname)
        frame.body_of = owner
        self.frames.append(frame)
        try:
            for statement in owner.facts.body:
                if statement[0] != "=" or statement[2][0][0] != "n" or statement[2][0][1].startswith("__"):
                    continue
                name = statement[2][0][1]
                expression = statement[3]
                if expression[0] == "c" and expression[1][-1 if expression[1][0] == "n" else 2] == "auto":
                    value: Value = name.lower() if text else last + 1
                else:
                    value = self.evaluate(expression)
                plain = single(value)
                last = plain if type(plain) is int else last
                member = next(
                    (m for m in cls.members.values() if python_values.to_python_or(m.payload, m) == plain), None
                )
                if member is None:
                    member = Instance(cls, {"_name_": name, "name": name, "_value_": value, "value": value})
                    member.attrs["_mixed_"] = mixed
                    member.payload = plain
                cls.members[name] = member
                owner.attrs[name] = value
        finally:
            self.frames.pop()

    def annotations(self, cls: ClassV) -> DictV:
        """`__annotations__` of a class's own body, each evaluated when it is read."""
        names: dict[str, Value] = {}
        if cls.facts is not None:
            for statement in cls.facts.body:
                if statement[0] == ":" and statement[2][0] == "n":
                    names[statement[2][1]] = self.annotation(cls, statement[3])
        return DictV(names)

    def annotation(self, cls: ClassV, expression: f.Expression) -> Value:
        """The type that an annotation of a class body names."""
        frame = Frame(cls.module, cls.frame if cls.frame is not cls.module.frame else None, cls.qualname)
        frame.body_of = cls
        self.frames.append(frame)
        try:
            return self.evaluate(expression)
        except (Raised, Unsupported):
            return unknown(["annotation"])
        finally:
            self.frames.pop()

    def record_fields(self, cls: ClassV) -> list[Any]:
        """Fields of a record class, inherited ones first."""
        from sgl_graph.analyzer.static.config.records import fields_of

        return fields_of(self, cls)


def _linearize(lines: list[list[Value]]) -> list[Value]:
    """C3 order; what it cannot order is appended as it comes."""
    result: list[Value] = []
    pending = [list(line) for line in lines if line]
    while pending:
        for line in pending:
            head = line[0]
            if not any(head in rest[1:] for rest in pending):
                break
        else:
            head = pending[0][0]
        result.append(head)
        pending = [[item for item in line if item is not head and item != head] for line in pending]
        pending = [line for line in pending if line]
    return result
