"""What is forgotten where a call or a statement cannot be evaluated: all that it may write, and nothing else.

Those are attributes of the objects passed in, fields named by keyword in recording calls, and environment variables.
"""

from __future__ import annotations

from collections.abc import Sequence

from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.config import walking
from sgl_graph.analyzer.static.config.objects import Objects
from sgl_graph.analyzer.static.config.possibilities import fuzzy, options_of, single, unknown
from sgl_graph.analyzer.static.config.program import FunctionV, Instance
from sgl_graph.analyzer.static.config.protocol import Place
from sgl_graph.analyzer.static.config.values import ABSENT, NO_DEPS, DictV, ListV, Value
from sgl_graph.analyzer.static.extract import facts as f
from sgl_graph.analyzer.static.extract.unasked import EVERY


class Unevaluated(Objects):
    """The part of the evaluator that makes unknown what it could not follow."""

    _overridable: list[str] | None = None

    def give_up(
        self, function: FunctionV, arguments: Sequence[Value], keywords: dict[str, Value], reason: str
    ) -> Value:
        """Make unknown what a function may write, and its result."""
        place = Place(function.module.module.path, function.facts.line, function.qualname)
        self.note(place, reason)
        forgotten = unknown([f"function:{function.qualname}"], place)
        names = [parameter.name for parameter in function.facts.parameters]
        given = dict(zip(names, arguments, strict=False)) | keywords
        body = function.module.module.evaluated_body(function.index)
        for statement in walking.walk(body):
            self._forget(statement, given, forgotten)
        return forgotten

    def havoc_body(self, body: Sequence[f.Statement]) -> None:
        forgotten = unknown([f"source:{self.place().file}:{self.line}"], self.place())
        frame = self.frames[-1]
        for statement in walking.walk(body):
            self._forget(statement, frame.names, forgotten)

    def _forget(self, statement: f.Statement, given: dict[str, Value], forgotten: Value) -> None:
        targets = statement[2] if statement[0] == "=" else [statement[2]] if statement[0] in ("+=", ":") else []
        for target in targets:
            if target[0] == "a" and target[1][0] == "n" and target[1][1] in given:
                for option in options_of(given[target[1][1]])[0]:
                    self.set_raw(option, target[2], forgotten, weak=True)
        for call in walking.calls_in(statement):
            name = call[1][1] if call[1][0] == "n" else call[1][2] if call[1][0] == "a" else ""
            words = [argument[1] for argument in call[2] if argument[0] == "k"]
            if name in profile.DECLARE_FUNCTIONS and any(argument[0] == "**" for argument in call[2]):
                words += self._overridable or []
            if name in profile.DECLARE_FUNCTIONS and words:
                receiver = next((given[a[1]] for a in call[2] if a[0] == "n" and a[1] in given), None)
                self.declare_unknown(receiver, words, forgotten)

    def recordable(self, function: Value) -> Sequence[str] | None:
        plain = single(function)
        if type(plain) is not FunctionV or plain.facts.name not in profile.DECLARE_FUNCTIONS:
            return None
        return self.overridable() or None

    def overridable(self) -> list[str]:
        """Arguments that model-specific code may decide: the keys of the dictionaries that it builds."""
        if self._overridable is None and self.declarations is not None:
            fields = {declaration.dest for declaration in self.declarations.items}
            names: dict[str, None] = {}
            for name in self.project.names():
                found = self.project.module(name) if name.startswith(profile.OVERRIDE_PACKAGE) else None
                if found is None:
                    continue
                found.asked.add(EVERY)
                for index in range(len(found.facts.functions)):
                    keys = walking.literal_keys(found.evaluated_body(index))
                    names.update(dict.fromkeys(key for key in keys if key in fields))
            self._overridable = list(names)
        return self._overridable or []

    def declare_unknown(self, receiver: Value, names: Sequence[str], forgotten: Value) -> None:
        """Fields recorded by a call that was not evaluated may hold anything."""
        for option in options_of(receiver)[0]:
            record = option
            if type(record) is not Instance:
                continue
            for slot in list(record.attrs.values()):
                plain = single(slot)
                if type(plain) is ListV and plain.items and _is_log(plain):
                    self.touch(plain)
                    table = DictV({name: fuzzy((forgotten, ABSENT), True, NO_DEPS) for name in names})
                    plain.items.append(("unknown", table))

    def note(self, place: object, reason: str) -> None:
        if isinstance(place, Place):
            self.problems.append((place, reason))


def _is_log(value: ListV) -> bool:
    last = value.items[-1]
    return type(last) is tuple and len(last) == 2 and type(single(last[1])) is DictV
