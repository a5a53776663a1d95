"""What every part of the evaluator stands on: modules on demand, names, limits and where the program stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.checkout.project import Project
from sgl_graph.analyzer.static.config.facts import LaunchFacts
from sgl_graph.analyzer.static.config.journal import Raised
from sgl_graph.analyzer.static.config.operations import Operations
from sgl_graph.analyzer.static.config.possibilities import fuzzy, taint, unknown
from sgl_graph.analyzer.static.config.program import Frame, Instance, ModuleV, Thunk
from sgl_graph.analyzer.static.config.protocol import Place
from sgl_graph.analyzer.static.config.registry import builtin
from sgl_graph.analyzer.static.config.values import ABSENT, NO_DEPS, Deps, External, Fuzzy, Value
from sgl_graph.analyzer.static.extract import facts as f
from sgl_graph.analyzer.static.extract.unasked import STEPS

_MAX_STEPS = 600_000
_MAX_DEPTH = 90
_ISOLATED_STEPS = 60_000


class Unsupported(Exception):
    """A construct that the evaluator does not model: the enclosing call becomes unknown."""


class Exhausted(Unsupported):
    """The step limit is spent."""


class Machine(Operations):
    """State of one evaluation: modules, names, limits, places."""

    def __init__(self, project: Project, facts: LaunchFacts) -> None:
        super().__init__()
        self.project = project
        self.facts = facts
        self.modules: dict[str, ModuleV] = {}
        self.frames: list[Frame] = []
        self.line = 0
        self.steps = 0
        self.limit = _MAX_STEPS
        #: (id of an object, attribute) or (0, declared name) to the statement that wrote it last.
        self.written: dict[tuple[int, str], Place] = {}
        #: The assignment that a class's own `__setattr__` is carrying out: object, attribute, where it stands.
        self.assigned: tuple[int, str, Place] | None = None
        #: id of a list to the function that returned it first: the one that computes it.
        self.made: dict[int, Place] = {}
        #: Raises that were passed over because they rest on assumed facts.
        self.doubtful: list[tuple[Place, Deps]] = []
        #: Declarations of the parser that parsed the command.
        self.declarations: Any = None
        #: The arguments' object once the command is parsed, and fields settled by hand.
        self.record: Instance | None = None
        self.assumed_fields: dict[str, str] = {}
        #: Predictions of the serving environment's own parser.
        self.asked_fields: dict[str, str] = {}
        #: The resolution was given up: what the command does not give is unknown.
        self.unfinished = False
        self.asserting = True
        #: Of a rehearsal: files whose code may raise; elsewhere it only says that no server runs yet. None: all may.
        self.raising: set[str] | None = None
        #: Exceptions being handled, innermost last.
        self.handling: list[Raised] = []
        #: Statements that could not be evaluated, with the reason.
        self.problems: list[tuple[Place, str]] = []
        self._hold: list[object] = []

    # -- places and limits

    def place(self) -> Place:
        """File, line and function of the statement that is being executed."""
        if not self.frames:
            return Place("", 0, "")
        frame = self.frames[-1]
        return Place(frame.module.module.path, self.line, frame.qualname)

    def step(self) -> None:
        """Count one statement or call."""
        self.steps += 1
        if self.steps > self.limit:
            raise Exhausted("step limit")

    def deep(self) -> bool:
        """Whether calls are nested too deeply to go on."""
        return len(self.frames) > _MAX_DEPTH

    def fail(self, kind: str, message: str = "") -> Raised:
        """An error that an operation of the analysed program meets (not a `raise` of its own)."""
        error = Instance(External(f"builtins.{kind}"), {"args": (message,)})
        return Raised(error, self.place(), explicit=False)

    def keep(self, item: object) -> None:
        """Keep an object alive whose identity is used as a key."""
        self._hold.append(item)

    def isolated(self, work: Callable[[], Value]) -> Value:
        """Evaluate what does not depend on the state of the moment: module bodies, defaults, cached functions."""
        held = self.levels, self.try_depth, self.control, self.line, self.forking, self.limit
        self.levels, self.try_depth, self.control, self.forking = [], 0, NO_DEPS, 0
        self.limit = max(self.limit, self.steps + _ISOLATED_STEPS)
        try:
            return work()
        finally:
            self.levels, self.try_depth, self.control, self.line, self.forking, self.limit = held

    # -- modules

    def module(self, name: str) -> ModuleV | None:
        """A module of the checkout, its body not yet executed."""
        module = self.modules.get(name)
        if module is None:
            loaded = self.project.module(name)
            if loaded is None:
                return None
            module = self.modules[name] = ModuleV(loaded)
        return module

    def import_module(self, name: str) -> Value:
        """What `import name` stands for."""
        module = self.module(name)
        if module is None:
            return External(name)
        if name.startswith(profile.EAGER_PACKAGES):
            self.run_module(module)
        return module

    def run_module(self, module: ModuleV) -> None:
        """Execute a module's body once; plain bindings stay unevaluated until they are read."""
        if module.executed:
            return
        module.executed = True
        self.isolated(lambda: self._run_body(module))

    def _run_body(self, module: ModuleV) -> None:
        self.frames.append(module.frame)
        try:
            facts = module.module.facts
            eager = module.name.startswith(profile.EAGER_PACKAGES)
            counts = _bindings(facts)
            module.module.asked.add(STEPS)
            for statement in facts.body:
                if not self._bind_lazily(module, statement, counts, eager):
                    self._run_guarded(module, statement)
        finally:
            self.frames.pop()

    def _run_guarded(self, module: ModuleV, statement: f.Statement) -> None:
        try:
            self.execute([statement])
        except (Raised, Unsupported, RecursionError):
            for name in bound_names(statement):
                module.names[name] = unknown([f"module:{module.name}"], self.place())

    def _bind_lazily(self, module: ModuleV, statement: f.Statement, counts: dict[str, int], eager: bool) -> bool:
        kind = statement[0]
        names = module.names
        if kind == "=" and len(statement[2]) == 1 and statement[2][0][0] == "n":
            name = statement[2][0][1]
            if counts[name] != 1:
                return False
            names[name] = self._lazy(module, statement[1], statement[3])
        elif kind == ":" and statement[2][0] == "n":
            name = statement[2][1]
            if statement[4] is None:
                return True
            if counts[name] != 1:
                return False
            names[name] = self._lazy(module, statement[1], statement[4])
        elif kind in ("def", "class"):
            items: Sequence[Any] = module.module.facts.functions if kind == "def" else module.module.facts.classes
            item = items[statement[2]]
            if eager and item.decorators:
                return False
            define = self.define_function if kind == "def" else self.define_class
            index = statement[2]
            if kind == "def":
                names[item.name] = Thunk(lambda: self.define_function(index, module.frame, None))
            else:
                names[item.name] = Thunk(lambda: define(index, module.frame))  # type: ignore[call-arg]
        elif kind == "from" and statement[4] != "*":
            source = module.module.absolute(statement[2], statement[3])
            if source.startswith(profile.EAGER_PACKAGES):
                self.import_module(source)
            for _, name, renamed in statement[4]:
                if f"{source}.{name}".startswith(profile.EAGER_PACKAGES) and self.project.has_module(
                    f"{source}.{name}"
                ):
                    self.import_module(f"{source}.{name}")
                if counts[renamed or name] != 1 and (renamed or name) in names:
                    return False
                names[renamed or name] = self._lazy_import(source, name)
        else:
            return False
        return True

    def _lazy(self, module: ModuleV, line: int, expression: f.Expression) -> Value:
        if expression[0] == "v":
            return expression[1]

        def evaluate() -> Value:
            self.frames.append(module.frame)
            self.line = line
            try:
                return self.evaluate(expression)
            finally:
                self.frames.pop()

        return Thunk(evaluate)

    def _lazy_import(self, source: str, name: str) -> Thunk:
        return Thunk(lambda: self.imported(source, name))

    def imported(self, source: str, name: str) -> Value:
        """What `from source import name` binds."""
        module = self.module(source)
        if module is None:
            if self.project.has_module(f"{source}.{name}"):
                return self.import_module(f"{source}.{name}")
            return self.facts.attribute(External(source), name)
        value = self.module_attribute(module, name)
        return unknown([f"module:{source}"], self.place()) if value is ABSENT else value

    def module_attribute(self, module: ModuleV, name: str) -> Value:
        """A module's attribute: a name of its body, a submodule, or what its `__getattr__` gives."""
        self.run_module(module)
        value = self.module_name(module, name)
        if value is not ABSENT:
            return value
        if self.project.has_module(f"{module.name}.{name}"):
            return self.import_module(f"{module.name}.{name}")
        if name in ("__name__", "__file__", "__path__"):
            return module.name if name == "__name__" else unknown(["checkout"])
        hook = module.names.get("__getattr__", ABSENT)
        if hook is not ABSENT:
            hook = self.force(module.names, "__getattr__")
            try:
                return self.call(hook, [name], {})
            except Raised:
                return ABSENT
        return ABSENT

    def module_name(self, module: ModuleV, name: str) -> Value:
        """A name that a module's body binds, or ABSENT."""
        module.module.asked.add(name)
        if name in module.names:
            return self.force(module.names, name)
        for star in module.stars:
            self.run_module(star)
            value = self.module_name(star, name)
            if value is not ABSENT:
                return value
        return ABSENT

    def force(self, names: dict[str, Value], name: str) -> Value:
        """The value of a binding, evaluated on first read."""
        value = names[name]
        if type(value) is not Thunk:
            return value
        names[name] = unknown(["circular"])
        try:
            result = self.isolated(value.evaluate)
        except (Raised, Unsupported, RecursionError):
            result = unknown([f"name:{name}"], self.place())
        names[name] = result
        return result

    # -- names

    def load(self, name: str) -> Value:
        """The value of a name in the current frame; ABSENT when nothing binds it."""
        frame: Frame | None = self.frames[-1]
        assert frame is not None
        module = frame.module
        while frame is not None:
            names = frame.names
            if name in names:
                value = names[name]
                return _present(value) if type(value) is Fuzzy else value
            if frame.body_of is not None:
                value = self.class_attribute(frame.body_of, name)
                if value is not ABSENT:
                    return value
            frame = frame.parent
        module.module.asked.add(name)
        if name in module.names:
            value = self.force(module.names, name)
            return _present(value) if type(value) is Fuzzy else value
        if module.stars:
            value = self.module_name(module, name)
            if value is not ABSENT:
                return value
        return builtin(name)

    def store(self, name: str, value: Value) -> None:
        """Bind a name in the current frame."""
        if self.control:
            value = taint(value, self.control, self.place())
        frame = self.frames[-1]
        scope = frame.scopes.get(name)
        if scope == "nonlocal":
            outer = frame.parent
            while outer is not None and name not in outer.names:
                outer = outer.parent
            frame = outer or frame
        elif scope == "global" or frame is frame.module.frame:
            self.touch(frame.module)
            frame.module.names[name] = value
            return
        if frame.body_of is not None:
            self.touch(frame.body_of)
            frame.body_of.attrs[name] = value
            return
        self.touch(frame)
        frame.names[name] = value


def _present(value: Fuzzy) -> Value:
    if ABSENT in value.options:
        return fuzzy([o for o in value.options if o is not ABSENT], value.open, value.deps, value.place)
    return value


def _bindings(facts: f.ModuleFacts) -> dict[str, int]:
    counts: dict[str, int] = {}
    for statement in facts.body:
        names = bound_names(statement)
        if statement[0] == "def":
            names = [facts.functions[statement[2]].name]
        elif statement[0] == "class":
            names = [facts.classes[statement[2]].name]
        for name in names:
            counts[name] = counts.get(name, 0) + 1
    return counts


def bound_names(statement: f.Statement) -> list[str]:
    """Names that a statement of a module or class body may bind (definitions by their index are not named here)."""
    kind = statement[0]
    found: list[str] = []
    if kind == "=":
        for target in statement[2]:
            found += _target_names(target)
    elif kind in (":", "+="):
        found += _target_names(statement[2])
    elif kind == "from" and statement[4] != "*":
        found += [renamed or name for _, name, renamed in statement[4]]
    elif kind == "import":
        found += [renamed or dotted.split(".")[0] for _, dotted, renamed in statement[2]]
    elif kind == "if":
        for part in (statement[3], statement[4]):
            found += [name for inner in part for name in bound_names(inner)]
    elif kind == "for":
        found += _target_names(statement[2])
        found += [name for inner in statement[4] for name in bound_names(inner)]
    elif kind in ("while", "with"):
        found += [name for inner in statement[3] for name in bound_names(inner)]
    elif kind == "try":
        parts = [statement[2], statement[4], statement[5], *(handler[2] for handler in statement[3])]
        found += [name for part in parts for inner in part for name in bound_names(inner)]
    return found


def _target_names(target: f.Expression) -> list[str]:
    if target[0] == "n":
        return [target[1]]
    if target[0] in ("t", "L"):
        return [name for item in target[1] for name in _target_names(item)]
    if target[0] == "*":
        return _target_names(target[1])
    return []
