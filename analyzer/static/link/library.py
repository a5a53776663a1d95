"""The standard library, and other code outside the checkout, as far as graphs may pass through it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.link.arguments import Arguments
from sgl_graph.analyzer.static.link.frame import Frame
from sgl_graph.analyzer.static.link.objects import Container, Scanned
from sgl_graph.analyzer.static.link.truth import payload_of
from sgl_graph.analyzer.static.link.values import (
    ANYTHING,
    NONE,
    NOTHING,
    Bound,
    ClassValue,
    Constant,
    EnumMember,
    External,
    FunctionValue,
    Unknown,
    Value,
    Values,
    Wrapped,
    depends_of,
    just,
)
from sgl_graph.analyzer.static.link.world import CallRecord

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.interpreter import Interpreter

#: A module imported by a name that may be any of more than these is not followed: it would be every one of them.
_MOST_IMPORTS = 12
#: Results of results of calls outside the checkout are followed this far: `torch.cuda.CUDAGraph().pool()`.
_MOST_CALLS = 2
#: Functions that look at what they are given, and call none of it.
_LOOKING = (
    "inspect.signature", "inspect.getfullargspec", "inspect.getsource", "inspect.getsourcefile", "inspect.getfile",
    "inspect.getmodule", "inspect.getdoc", "inspect.isfunction", "inspect.ismethod", "inspect.isclass",
    "inspect.iscoroutinefunction", "inspect.isgeneratorfunction", "asyncio.iscoroutinefunction",
)  # fmt: skip
_QUEUES = (
    "queue.Queue", "queue.SimpleQueue", "queue.LifoQueue", "queue.PriorityQueue", "asyncio.Queue", "weakref.WeakSet",
)  # fmt: skip


from sgl_graph.analyzer.static.link.container_methods import ContainerMethods


class Library(ContainerMethods):
    """Calls of what lies outside the checkout."""

    def __init__(self, interpreter: Interpreter) -> None:
        super().__init__(interpreter)
        self._externals: dict[str, Callable[[Frame, Arguments, CallRecord, Hashable], Values]] = {
            "functools.partial": self._partial, "functools.partialmethod": self._partialmethod,
            "functools.wraps": self._wraps, "functools.update_wrapper": self._first, "functools.lru_cache": self._cache,
            "functools.cache": self._cache, "functools.cached_property": self._property,
            "contextlib.contextmanager": self._contextmanager, "contextlib.asynccontextmanager": self._contextmanager,
            "contextlib.nullcontext": self._nullcontext, "copy.copy": self._first, "copy.deepcopy": self._first,
            "typing.cast": self._second, "dataclasses.replace": self._first, "dataclasses.field": self._field,
            "collections.defaultdict": self._defaultdict, "collections.OrderedDict": self._dict_call,
            "collections.deque": self._sequence_call, "importlib.import_module": self._import_module,
            "pkgutil.iter_modules": self._iter_modules, "pkgutil.walk_packages": self._iter_modules,
            "os.environ.get": self._environment, "os.getenv": self._environment, "weakref.ref": self._weak,
            "weakref.proxy": self._first, "asyncio.run": self._first, "types.MethodType": self._method_type,
            "itertools.chain": self._chain, "operator.attrgetter": self._unknown,
            "types.SimpleNamespace": self._namespace, "threading.local": self._namespace,
            "contextvars.ContextVar": self._context_variable, "types.MappingProxyType": self._first,
            "weakref.WeakKeyDictionary": self._dict_call, "weakref.WeakValueDictionary": self._dict_call,
            "functools.reduce": self._reduce, "torch.nn.ModuleList": self._sequence_call,
            "torch.nn.ModuleDict": self._dict_call, "torch.nn.Sequential": self._sequential,
        }  # fmt: skip
        self._externals |= dict.fromkeys(_QUEUES, self._sequence_call) | dict.fromkeys(_LOOKING, self._unknown)

    def external(self, frame: Frame, path: str, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        """A call of something outside the checkout."""
        model = self._externals.get(path)
        if model is not None:
            return model(frame, arguments, record, site)
        target = arguments.keywords.get("target")
        if target is not None:
            return self._spawn(frame, target, arguments, record, site, path)
        if path.endswith((".submit", ".run_in_executor", ".call_soon", ".to_thread")):
            return self._submit(frame, arguments, record, site, path)
        if path.endswith(".enter_context") and arguments.positional:
            return self._in.implicit.enter_values(frame, arguments.positional[0])
        wrapped: Values = NOTHING
        if arguments.positional:
            first = arguments.positional[0]
            wrapped = frozenset(v for v in first if isinstance(v, (FunctionValue, Bound, Wrapped)))
        if path == "functools.wraps()":
            return arguments.get(0, "wrapper")
        self._in.implicit.escape(frame, arguments.every())
        result: set[Value] = set(wrapped)
        if self._in.keeps(path) and path.count("(") < _MOST_CALLS:
            result.add(External.of(f"{path}()"))
        else:
            result |= ANYTHING
        return frozenset(result)

    def _spawn(
        self, frame: Frame, target: Values, arguments: Arguments, record: CallRecord, site: Hashable, path: str
    ) -> Values:
        """`Thread(target=..., args=...)`, `Process(target=..., kwargs=...)`."""
        given = Arguments()
        items = arguments.keywords.get("args", NOTHING)
        for value in items:
            if isinstance(value, Container) and value.length is not None and len(items) == 1:
                given.positional = [self._world.element(value, Constant.of(index)) for index in range(value.length)]
            else:
                given.star |= self.iterate(just(value))
        for value in arguments.keywords.get("kwargs", NOTHING):
            if isinstance(value, Container) and value.kind == "dict":
                heap = self._world.heap
                for key in heap.read(self._world.keys(value)):
                    if isinstance(key, Constant) and isinstance(key.value, str):
                        given.keywords[key.value] = self._world.element(value, key)
        for callee in target:
            implicit = self._world.record_implicit(frame, callee, self._in.line)
            self._in.calls.invoke(frame, callee, given, implicit, (site, "target"))
        return just(External.of(f"{path}()")) if self._in.keeps(path) else ANYTHING

    def _submit(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable, path: str) -> Values:
        """`executor.submit(function, *arguments)`."""
        positional = arguments.positional
        start = 1 if path.endswith(".run_in_executor") else 0
        if len(positional) > start:
            for callee in positional[start]:
                if isinstance(callee, (FunctionValue, Bound)):
                    implicit = self._world.record_implicit(frame, callee, self._in.line)
                    given = Arguments(positional[start + 1 :], arguments.keywords)
                    self._in.calls.invoke(frame, callee, given, implicit, (site, "submit"))
        return ANYTHING

    def _first(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        return arguments.get(0, "object")

    def _second(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        return arguments.get(1, "val")

    def _unknown(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        return ANYTHING

    def _partial(
        self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable, kind: str = "partial"
    ) -> Values:
        world = self._world
        heap = world.heap
        container = self._new(kind, site, frame)
        container.length = max(len(arguments.positional) - 1, 0)
        if arguments.positional:
            world.put(container, Constant.of("func"), arguments.positional[0])
        for index, values in enumerate(arguments.positional[1:]):
            heap.write(heap.cell(("partial", container, index)), values)
        for name, values in arguments.keywords.items():
            heap.write(heap.cell(("partial-names", container)), just(Constant.of(name)))
            heap.write(heap.cell(("partial", container, name)), values)
        return just(container)

    def _partialmethod(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        return self._partial(frame, arguments, record, site, "partialmethod")

    def _wraps(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        return just(External.of("functools.wraps()"))

    def _cache(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        first = arguments.get(0, "user_function")
        functions = frozenset(v for v in first if isinstance(v, (FunctionValue, Bound, Wrapped)))
        return functions or just(External.of("functools.wraps()"))

    def _property(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        return frozenset(Wrapped.of(v, "property") for v in arguments.get(0, "func"))

    def _contextmanager(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        return frozenset(Wrapped.of(v, "contextmanager") for v in arguments.get(0, "func"))

    def _nullcontext(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        return just(External.of("contextlib.nullcontext()"))

    def _field(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        if "default" in arguments.keywords:
            return arguments.keywords["default"]
        found: set[Value] = set()
        for callee in arguments.keywords.get("default_factory", NOTHING):
            found |= self._in.calls.invoke(frame, callee, Arguments(), record, (site, "default"))
        return frozenset(found)

    def _defaultdict(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        container = self._new("dict", site, frame)
        container.factory = container.factory | arguments.get(0, "default_factory")
        if len(arguments.positional) > 1:
            self.update(container, arguments.positional[1])
        for key, values in arguments.keywords.items():
            self._world.put(container, Constant.of(key), values)
        return just(container)

    def _dict_call(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        container = self._new("dict", site, frame)
        for values in arguments.positional:
            self.update(container, values)
        for key, values in arguments.keywords.items():
            self._world.put(container, Constant.of(key), values)
        return just(container)

    def _sequence_call(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        kind = site[1] if isinstance(site, tuple) and site[1] in ("tuple", "set") else "list"
        first = arguments.get(0, "iterable")
        if kind == "tuple" and first and all(isinstance(v, Container) and v.kind == "tuple" for v in first):
            return first
        container = self._new(str(kind), site, frame)
        self._world.put(container, None, self.iterate(first))
        if isinstance(site, tuple) and site[1] == "list" and first:
            container.length = self.common_length(first)
        return just(container)

    def _sequential(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        """`torch.nn.Sequential(*steps)`: calling it calls each step."""
        container = self._new("sequential", site, frame)
        for values in arguments.every():
            for value in values:
                nested = isinstance(value, Container) and value.kind == "dict"
                steps = self._world.all_elements(value) if nested else just(value)  # type: ignore[arg-type]
                self._world.put(container, None, steps)
        return just(container)

    def _namespace(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        """An object of which only the attributes that are stored are known."""
        container = self._new("namespace", site, frame)
        for name, values in arguments.keywords.items():
            self._world.put(container, Constant.of(name), values)
        if arguments.double:
            self._world.put(container, None, arguments.double)
        return just(container)

    def _context_variable(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        container = self._new("contextvar", site, frame)
        self._world.put(container, None, arguments.keywords.get("default", NOTHING))
        return just(container)

    def _reduce(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        elements = self.iterate(arguments.get(1, "iterable")) | arguments.get(2, "initial")
        found: set[Value] = set(elements)
        for callee in arguments.get(0, "function"):
            found |= self._in.calls.invoke(frame, callee, Arguments([elements, elements]), record, (site, "reduce"))
        return frozenset(found)

    def _chain(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        container = self._new("list", site, frame)
        for values in arguments.positional:
            self._world.put(container, None, self.iterate(values))
        return just(container)

    def _weak(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        container = self._new("partial", site, frame)
        container.length = 1
        self._world.put(container, Constant.of("func"), just(External.of("copy.copy")))
        self._world.heap.write(self._world.heap.cell(("partial", container, 0)), arguments.get(0, "object"))
        return just(container)

    def _method_type(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        receivers = arguments.get(1, "instance")
        return frozenset(
            Bound.of(function, receiver) for function in arguments.get(0, "function") for receiver in receivers
        )

    def _import_module(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        found: set[Value] = set()
        names = arguments.get(0, "name")
        if len(names) > _MOST_IMPORTS:
            return just(Unknown.of(depends_of(names)))
        for name in names:
            if isinstance(name, Constant) and isinstance(name.value, str):
                dotted = name.value
                if dotted.startswith("."):
                    level = len(dotted) - len(dotted.lstrip("."))
                    dotted = frame.activation.module.absolute(dotted.lstrip("."), level)
                found |= self._in.attributes.imported(dotted, None)
            elif isinstance(name, Scanned):
                found.add(Scanned.of(name.package, "module"))
            else:
                found.add(Unknown.of(depends_of(just(name))))
        return frozenset(found)

    def _iter_modules(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        packages = [v for v in arguments.get(0, "path") if isinstance(v, Scanned) and v.kind == "path"]
        if not packages:
            return ANYTHING
        rows = self._new("tuple", (site, "row"), frame)
        rows.length = 3
        for package in packages:
            self._world.put(rows, Constant.of(0), ANYTHING)
            self._world.put(rows, Constant.of(1), just(Scanned.of(package.package, "name")))
            self._world.put(rows, Constant.of(2), ANYTHING)
        result = self._new("list", site, frame)
        self._world.put(result, None, just(rows))
        return just(result)

    def _environment(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        values = self._environment_values(arguments.get(0, "key"))
        default = arguments.get(1, "default")
        if default and NONE in values:
            return frozenset(v for v in values if v is not NONE) | default
        return values

    def enum_member(self, cls: ClassValue, arguments: Arguments) -> Values:
        """`Color(value)`: the member of that value."""
        wanted = arguments.get(0, "value")
        members = [m for m in self.members(cls) if isinstance(m, EnumMember)]
        found: set[Value] = set()
        for value in wanted:
            if isinstance(value, EnumMember):
                found.add(value)
            elif isinstance(value, Constant):
                for member in members:
                    payload = payload_of(member)
                    if type(payload) is type(value.value) and payload == value.value:
                        found.add(member)
            else:
                return frozenset(members)
        return frozenset(found)
