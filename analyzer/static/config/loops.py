"""Loops over elements that may be several, over unknown ones, and those that only search."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sgl_graph.analyzer.static.config.journal import FELL_THROUGH, Signal
from sgl_graph.analyzer.static.config.machine import Unsupported
from sgl_graph.analyzer.static.config.possibilities import deps_of, fuzzy, options_of, taint, unknown
from sgl_graph.analyzer.static.config.simple_statements import SimpleStatements
from sgl_graph.analyzer.static.config.values import ABSENT, NO_DEPS, Alternatives, Deps, DictV, Fuzzy, Value
from sgl_graph.analyzer.static.extract import facts as f

_MAX_ITERATIONS = 5000


class Loops(SimpleStatements):
    """The part of the evaluator that runs loops."""

    def run_for(self, statement: f.Statement) -> Signal:
        """Run a `for` statement."""
        source = self.evaluate(statement[3])
        items = self.runs(source)
        depth = len(self.levels)
        if items is None or len(items) > _MAX_ITERATIONS:
            return self._for_unknown(statement, deps_of(source))
        deps = deps_of(source)
        held = self.control
        self.control = held | deps
        try:
            found = self._search(statement, items)
            if found is not None:
                return found
            signal = self._run_items(statement, items)
            if not signal[0]:
                signal = self.execute(statement[5])
        finally:
            self.control = held
        return self.settle(depth, signal, ("", "break"))

    def _run_items(self, statement: f.Statement, items: Sequence[Value]) -> Signal:
        for item in items:
            depth = len(self.levels)
            if type(item) is Alternatives:

                def branch(run: tuple[Value, ...]) -> Callable[[], Signal]:
                    return lambda: self._run_items(statement, run)

                signal = self.fork([branch(run) for run in item.runs], item.deps)
            elif type(item) is Fuzzy and ABSENT in item.options:
                present = fuzzy([o for o in item.options if o is not ABSENT], item.open, item.deps)

                def one(value: Value = present) -> Signal:
                    self.assign(statement[2], value)
                    return self.execute(statement[4])

                signal = self.fork([one, lambda: FELL_THROUGH], item.deps)
                signal = self.settle(depth, signal, ("", "continue"))
            else:
                self.line = statement[1]
                self.assign(statement[2], item)
                signal = self.execute(statement[4])
                if signal[0] or len(self.levels) > depth:
                    signal = self.settle(depth, signal, ("", "continue"))
            if signal[0]:
                return signal
        return FELL_THROUGH

    def _search(self, statement: f.Statement, items: Sequence[Value]) -> Signal | None:
        """`for ..., table in items: if key in table: return table[key]`, the loop that finds the last declaration.

        The loop is common in resolution code and runs for every read of a field; done here it costs one pass.
        """
        shape = _search_shape(statement)
        if shape is None:
            return None
        position, key_expression = shape
        key = self.evaluate(key_expression)
        if type(key) is not str:
            return None
        found: list[Value] = []
        deps = NO_DEPS
        certain = _search_items(items, position, key, found)
        if certain is None:
            return None
        if not found:
            return None if not certain else FELL_THROUGH
        value = found[0] if len(found) == 1 and certain else fuzzy(found, False, deps)
        value = taint(value, self.control, self.place()) if self.control else value
        if certain:
            return "return", value
        return self.fork([lambda: ("return", value), lambda: FELL_THROUGH], deps_of(value))

    def _for_unknown(self, statement: f.Statement, deps: Deps) -> Signal:
        """A loop over unknown elements: what one round with an unknown element writes may or may not have happened."""
        depth = len(self.levels)

        def round_() -> Signal:
            self.assign(statement[2], unknown(deps, self.place()))
            inner = len(self.levels)
            return self.settle(inner, self.execute(statement[4]), ("", "continue"))

        signal = FELL_THROUGH
        for _ in range(2):
            signal = self.fork([round_, lambda: FELL_THROUGH], deps)
            if signal[0]:
                break
        if not signal[0]:
            signal = self.execute(statement[5])
        return self.settle(depth, signal, ("", "break"))

    def run_while(self, statement: f.Statement) -> Signal:
        """Run a `while` statement."""
        depth = len(self.levels)
        held = self.control
        signal = FELL_THROUGH
        for _ in range(_MAX_ITERATIONS):
            truth, deps = self.test(statement[2])
            if truth is False:
                break
            if truth is None:
                signal = self._for_unknown(["for", statement[1], ["x"], ["x"], statement[3], []], deps)
                break
            self.control |= deps
            inner = len(self.levels)
            signal = self.settle(inner, self.execute(statement[3]), ("", "continue"))
            if signal[0]:
                break
        else:
            raise Unsupported("loop without end")
        self.control = held
        if not signal[0] and statement[4]:
            signal = self.execute(statement[4])
        return self.settle(depth, signal, ("", "break"))


def _search_shape(statement: f.Statement) -> tuple[int | None, f.Expression] | None:
    target, body = statement[2], statement[4]
    if len(body) != 1 or body[0][0] != "if" or body[0][4] or len(body[0][3]) != 1 or statement[5]:
        return None
    inner = body[0][3][0]
    test = body[0][2]
    if inner[0] != "return" or inner[2] is None or inner[2][0] != "s" or test[0] != "cmp" or len(test[2]) != 1:
        return None
    operator, table = test[2][0]
    if operator != "in" or table[0] != "n" or test[1][0] != "n":
        return None
    if inner[2][1] != ["n", table[1]] or inner[2][2] != [test[1]]:
        return None
    if target[0] == "n" and target[1] == table[1]:
        return None, test[1]
    if target[0] == "t":
        for position, item in enumerate(target[1]):
            if item == ["n", table[1]]:
                return position, test[1]
    return None


def _search_items(items: Sequence[Value], position: int | None, key: str, found: list[Value]) -> bool | None:
    """Collect what the search may return; True when it certainly returned or certainly found nothing, None to give up."""
    for item in items:
        if type(item) is Alternatives:
            ends = []
            for run in item.runs:
                before = len(found)
                end = _search_items(run, position, key, found)
                if end is None:
                    return None
                ends.append(end and len(found) > before)
            if all(ends):
                return True
            continue
        if position is not None:
            if type(item) is Fuzzy:
                if item.open or not all(type(o) is tuple for o in item.options):
                    return None
                table: Value = fuzzy([o[position] for o in item.options], False, item.deps)
            elif type(item) is tuple:
                table = item[position]
            else:
                return None
        else:
            table = item
        options, open_ = options_of(table)
        if open_ or not all(type(option) is DictV for option in options):
            return None
        hits = 0
        for option in options:
            value = option.items.get(key, ABSENT)
            if value is ABSENT:
                if option.opaque is not None:
                    found.append(unknown(option.opaque | deps_of(table)))
                continue
            if type(value) is Fuzzy and ABSENT in value.options:
                rest = fuzzy([o for o in value.options if o is not ABSENT], value.open, value.deps, value.place)
                found.append(taint(rest, deps_of(table)))
                continue
            found.append(taint(value, deps_of(table)))
            hits += 1
        if hits == len(options):
            return True
    return not found
