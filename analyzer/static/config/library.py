"""The parts of the standard library that resolution code computes with."""

from __future__ import annotations

import itertools
import json
import math
import operator
import os.path
import re
import shlex
import sys
from typing import TYPE_CHECKING, Any

from sgl_graph.analyzer.static.config import containers, operators
from sgl_graph.analyzer.static.config.methods import apply_plain
from sgl_graph.analyzer.static.config.possibilities import deps_of, fuzzy, single, taint, unknown
from sgl_graph.analyzer.static.config.program import Bound, Instance
from sgl_graph.analyzer.static.config.python_values import from_python, inner_deps
from sgl_graph.analyzer.static.config.registry import CONSTANTS, native
from sgl_graph.analyzer.static.config.values import ABSENT, DictV, External, Fuzzy, ListV, Native, Value

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.config.calls import Calls

Arguments = list[Value]
Keywords = dict[str, Value]

_LOGGER = External("logging.getLogger")


def _pure(path: str, function: Any) -> None:
    native(path)(lambda machine, arguments, keywords: apply_plain(machine, function, arguments, keywords))


for _name in (
    "ceil",
    "floor",
    "sqrt",
    "log",
    "log2",
    "log10",
    "gcd",
    "prod",
    "isclose",
    "isnan",
    "pow",
    "lcm",
    "trunc",
):
    _pure(f"math.{_name}", getattr(math, _name))
CONSTANTS.update({"math.inf": math.inf, "math.pi": math.pi, "math.nan": math.nan})
for _name in ("join", "basename", "dirname", "normpath", "splitext", "split", "isabs"):
    _pure(f"os.path.{_name}", getattr(os.path, _name))
_pure("shlex.split", shlex.split)
_pure("shlex.join", shlex.join)
_pure("shlex.quote", shlex.quote)
for _name in ("add", "sub", "mul", "eq", "ne", "lt", "le", "gt", "ge", "or_", "and_"):
    _pure(f"operator.{_name}", getattr(operator, _name))
_pure("itertools.accumulate", lambda *values: list(itertools.accumulate(*values)))
_pure("itertools.product", lambda *values: list(itertools.product(*values)))


def _silent(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    return None


native(
    "warnings.warn", "warnings.simplefilter", "warnings.filterwarnings", "logging.basicConfig", "logging.captureWarnings",
    "atexit.register", "gc.collect", "faulthandler.enable", "time.sleep", "sys.stdout.flush", "sys.stderr.flush",
    "signal.signal", "multiprocessing.set_start_method", "os.makedirs", "torch.set_num_threads",
)(_silent)  # fmt: skip


@native("logging.getLogger", "loguru.logger")
def _logger(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    return Instance(_LOGGER)


for _level in ("debug", "info", "warning", "warn", "error", "critical", "exception", "log", "setLevel", "addHandler"):
    native(f"logging.getLogger().{_level}", f"logging.{_level}")(_silent)
CONSTANTS.update(
    {f"logging.{name}": number for name, number in (("DEBUG", 10), ("INFO", 20), ("WARNING", 30), ("ERROR", 40))}
)
native("logging.getLogger().isEnabledFor")(lambda machine, arguments, keywords: False)


@native("json.loads", "orjson.loads", "yaml.safe_load")
def _json_loads(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    def load(text: Any) -> Any:
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(str(error)) from None

    return apply_plain(machine, load, arguments[:1], {})


@native("json.dumps")
def _json_dumps(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    return apply_plain(machine, json.dumps, arguments[:1], {})


# -- operating system


@native("os.getenv", "os.environ.get")
def _getenv(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    default = arguments[1] if len(arguments) > 1 else keywords.get("default")
    return machine.call(machine.get(machine.facts.environment, "get"), [arguments[0], default], {})


def _path_test(kinds: tuple[str, ...]) -> Any:
    def call(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
        path = single(arguments[0])
        if type(path) is Instance and "_text" in path.attrs:
            path = single(path.attrs["_text"])
        if isinstance(path, str):
            return machine.facts.path_is(path, kinds)
        return unknown(deps_of(arguments[0]) | {"disk"}, machine.place())

    return call


native("os.path.exists", "os.path.lexists", "os.access", "pathlib.Path().exists")(_path_test(("file", "folder")))
native("os.path.isdir", "pathlib.Path().is_dir")(_path_test(("folder",)))
native("os.path.isfile", "pathlib.Path().is_file")(_path_test(("file",)))


@native("os.path.expanduser", "os.path.abspath", "os.path.realpath", "os.fspath", "os.path.expandvars")
def _same_path(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    return arguments[0]


@native("os.cpu_count", "multiprocessing.cpu_count", "os.getpid", "os.getcwd", "socket.gethostname", "time.time")
def _machine_fact(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    return unknown(["host"], machine.place())


native("platform.machine")(lambda machine, arguments, keywords: "x86_64")
native("platform.system")(lambda machine, arguments, keywords: "Linux")
CONSTANTS.update(
    {
        "os.sep": "/", "os.name": "posix", "sys.platform": "linux", "sys.maxsize": sys.maxsize,
        "typing.TYPE_CHECKING": False, "typing_extensions.TYPE_CHECKING": False, "sys.version_info": (3, 12, 0),
        "builtins.__debug__": True,
    }
)  # fmt: skip
CONSTANTS["sys.modules"] = DictV({})
# A saver that could be imported says so whatever it does: the package keeps the property for compatibility only.
CONSTANTS["torch_memory_saver.torch_memory_saver.enabled"] = True


@native("importlib.import_module", "builtins.__import__")
def _import(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    def work(name: Value) -> Value:
        return machine.import_module(name) if isinstance(name, str) else unknown(["source"], machine.place())

    return operators.lift(machine, work, arguments[0])


@native("importlib.util.find_spec", "importlib.find_loader", "pkgutil.find_loader")
def _find_spec(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    name = single(arguments[0])
    if not isinstance(name, str):
        return unknown(deps_of(arguments[0]), machine.place())
    if machine.project.has_module(name):
        return Instance(External("importlib.ModuleSpec"), {}, frozenset(["package:sglang"]))
    installed, deps = machine.facts.installed(name.split(".")[0])
    spec = Instance(External("importlib.ModuleSpec"), {}, frozenset([f"package:{name.split('.')[0]}"]))
    if installed is None:
        return fuzzy([spec, None], False, deps, machine.place())
    return taint(spec if installed else None, deps, machine.place())


@native("importlib.metadata.entry_points")
def _entry_points(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    # No plugin outside the tree is assumed: none is part of a release, and one would have to be installed on purpose.
    return ListV([])


# -- text


for _name in ("sub", "split", "findall", "escape"):
    _pure(f"re.{_name}", getattr(re, _name))


def _match(name: str) -> Any:
    def call(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
        def run(pattern: str, text: str) -> bool:
            return getattr(re, name)(pattern, text) is not None

        def work(pattern: Value, text: Value) -> Value:
            if not isinstance(pattern, str) or not isinstance(text, str):
                return unknown(inner_deps(pattern) | inner_deps(text), machine.place())
            found = getattr(re, name)(pattern, text)
            if found is None:
                return None
            groups = [found.group(0), *found.groups()]
            table = DictV({i: g for i, g in enumerate(groups)} | found.groupdict())
            value = Instance(External("re.Match"), {"string": text})
            value.payload = table
            return value

        return operators.lift(machine, work, arguments[0], arguments[1])

    return call


for _name in ("match", "search", "fullmatch"):
    native(f"re.{_name}")(_match(_name))


@native("re.Match().group")
def _group(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    wanted = arguments[1] if len(arguments) > 1 else 0
    return containers.subscript(machine, single(arguments[0]).payload, wanted)


@native("re.Match().groups")
def _groups(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    table = single(arguments[0]).payload.items
    return tuple(table[i] for i in range(1, len(table)) if i in table)


@native("re.compile")
def _compile(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    return Instance(External("re.Pattern"), {"pattern": arguments[0]})


for _name in ("match", "search", "fullmatch", "sub", "findall", "split"):

    def _on_pattern(machine: Calls, arguments: Arguments, keywords: Keywords, name: str = _name) -> Value:
        pattern = single(arguments[0]).attrs["pattern"]
        return machine.call(External(f"re.{name}"), [pattern, *arguments[1:]], keywords)

    native(f"re.Pattern().{_name}")(_on_pattern)


# -- iteration, contexts, types


@native("itertools.chain", "itertools.chain.from_iterable")
def _chain(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    columns = arguments
    if len(arguments) == 1:
        columns = machine.elements(arguments[0]) or arguments
    result: list[Value] = []
    for column in columns:
        items = machine.elements(column)
        if items is None:
            return unknown(inner_deps(column), machine.place())
        result += items
    return ListV(result)


@native("contextlib.suppress")
def _suppress(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    return Instance(External("contextlib.suppress"))


@native("contextlib.nullcontext")
def _nullcontext(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    return ListV([arguments[0] if arguments else None])


@native("typing.cast")
def _cast(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    return arguments[1]


@native("typing.TypeVar", "typing.NewType", "typing.ParamSpec")
def _type_variable(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    return External("typing.TypeVar()")


@native("collections.namedtuple", "enum.auto", "threading.Lock", "threading.RLock", "contextvars.ContextVar")
def _opaque(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    return unknown(["library"], machine.place())


@native("functools.total_ordering", "typing.overload", "typing.runtime_checkable", "typing.final", "abc.abstractmethod")
def _identity(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    return arguments[0]


@native("pathlib.Path")
def _path(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    def work(*parts: Value) -> Value:
        if all(isinstance(part, str) for part in parts):
            return os.path.join(*parts) if parts else "."
        return unknown(["disk"], machine.place())

    parts = [
        single(a).attrs["_text"] if type(single(a)) is Instance and "_text" in single(a).attrs else a for a in arguments
    ]
    text = operators.lift(machine, work, *parts)
    if not isinstance(single(text), str):
        return unknown(["disk"], machine.place())
    return Instance(External("pathlib.Path"), {"_text": text}, frozenset(["disk"]))


@native("pathlib.Path().__str__", "pathlib.Path().as_posix")
def _path_text(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    return single(arguments[0]).attrs["_text"]


@native("packaging.version.parse", "packaging.version.Version", "packaging.version")
def _version(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    text = single(arguments[0])
    deps = deps_of(arguments[0])
    if not isinstance(text, str):
        return unknown(deps or ["package:packaging"], machine.place())
    numbers = tuple(int(part) for part in re.findall(r"\d+", text.split("+")[0].split("rc")[0])[:4])
    padded = (*numbers, 0, 0, 0)[:3]
    attrs: dict[str, Value] = {"release": numbers, "major": padded[0], "minor": padded[1], "micro": padded[2]}
    return taint(Instance(External("packaging.version.Version"), attrs), deps)


__all__ = ["ABSENT", "Bound", "Fuzzy", "Native", "from_python"]


@native("torch.is_tensor")
def _is_tensor(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    return machine.is_instance(arguments[0], External("torch.Tensor"))
