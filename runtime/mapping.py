"""Effects around a path map: find the checkout, read the model's configuration, learn the device, build, measure."""

from __future__ import annotations

import gc
import hashlib
import os
import re
import resource
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sgl_graph.analyzer.errors import ConfigError
from sgl_graph.analyzer.records.base import canonical_json
from sgl_graph.analyzer.records.pathmap import CheckoutIdentity, DeviceFacts, PathMap
from sgl_graph.analyzer.records.strict_json import parse_json
from sgl_graph.analyzer.serving_command import ServingCommand
from sgl_graph.analyzer.static.checkout.project import Project, module_name
from sgl_graph.analyzer.static.config.device import PRODUCTS, parse_device
from sgl_graph.analyzer.static.config.device import DeviceFacts as LaunchDevice
from sgl_graph.analyzer.static.config.inputs import Launch, parse_assumptions
from sgl_graph.analyzer.static.config.protocol import Configuration
from sgl_graph.runtime.checkout import NOT_SERVING, CheckoutSources, Location, locate
from sgl_graph.runtime.fact_store import FactStore, default_folder
from sgl_graph.runtime.identity import checkout_identity, release_of, tool_digest
from sgl_graph.runtime.map_cache import Reads, digest_of, key_of, load, save
from sgl_graph.runtime.model import MODEL_FLAGS, local_model
from sgl_graph.runtime.serving_parser import ask_parser
from sgl_graph.runtime.source_record import record_of

if TYPE_CHECKING:  # what analyses is imported where it is needed: most maps are found in the cache
    from sgl_graph.analyzer.static.linked import Linked
    from sgl_graph.analyzer.static.preflight import Request

_LARGEST_CONFIG = 16 << 20
_QUIET_SECONDS = 10
Step = Callable[[str], None]


@dataclass(frozen=True)
class MapOptions:
    """What `preflight` was asked for."""

    command: ServingCommand
    checkout: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    model_config: Path | None = None
    device: str | None = None
    assume: Sequence[str] = ()
    resolve: bool = False
    budget: int | None = None
    jobs: int = 2
    cache: bool = True


def make_map(options: MapOptions, on_step: Step = lambda text: None) -> PathMap:
    """The path map of one checkout and command.

    Raises:
        CheckoutNotFound: no serving checkout at the place.
        ConfigError: an option, a file it names, or the command cannot be used.
    """
    started = time.perf_counter()
    location = locate(options.checkout)
    store = FactStore(default_folder() if options.cache else None)
    sources = CheckoutSources(location.base, store, jobs=max(1, options.jobs), excluded=NOT_SERVING)
    try:
        with no_collections():
            made = _stored_or_made(options, location, store, sources, on_step)
    finally:
        sources.close()
        store.close()
    stats = made.stats.model_copy(
        update={
            "modules_parsed": sources.reading.parsed,
            "modules_cached": sources.reading.cached,
            "seconds": round(time.perf_counter() - started, 2),
            "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        }
    )
    return made.model_copy(update={"stats": stats})


@contextmanager
def no_collections() -> Iterator[None]:
    """An analysis makes millions of small objects that last: looking for garbage among them takes a second of fifteen, and finds next to none."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            if not gc.get_freeze_count():
                # All count as old from here on: else the next object that anybody makes has the collector go through what was made within.
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def _stored_or_made(
    options: MapOptions, location: Location, store: FactStore, sources: CheckoutSources, on_step: Step
) -> PathMap:
    env = {**options.env, **options.command.env}
    reads = Reads(
        model=lambda path: _config_on_disk(path, env),
        kind=_path_kind,
        yaml=_yaml,
    )
    model = _model(options, env)
    device, source = _device(options)
    on_step(f"reading {location.base / 'sglang'}")
    identity, facts = _identity(location, sources), _facts(device, source, options.command)
    asked = {
        "place": [identity.root, identity.layout],
        "command": options.command.argv(),
        "env": env,
        "device": facts.model_dump(mode="json"),
        "model": digest_of(model),
        "budget": options.budget,
    }
    key = key_of(tool_digest(), asked, repr(device), list(options.assume))
    stored = load(store, key, reads, sources) if options.cache and not options.resolve else None
    if stored is not None:
        return PathMap.model_validate_json(stored).model_copy(update={"checkout": identity})
    launch = Launch(
        arguments=options.command.arguments,
        environment=env,
        device=device,
        model_config=model,
        model_configs=reads.reader("model"),
        path_kind=reads.reader("kind"),
        read_yaml=reads.reader("yaml"),
        assumptions=parse_assumptions(options.assume),
    )
    if options.resolve:
        on_step("asking the serving environment's parser")
        launch = replace(launch, assumptions=ask_parser(launch, options.command, location))
    project = Project(sources)
    made = _make(project, _request(options, env, identity, facts, model), launch, sources, on_step)
    if options.cache and not options.resolve:
        save(store, key, reads, record_of(sources, project), made.model_dump_json())
    return made


def _make(project: Project, request: Request, launch: Launch, sources: CheckoutSources, on_step: Step) -> PathMap:
    from sgl_graph.analyzer.static.config.resolve import resolve
    from sgl_graph.analyzer.static.preflight import build
    from sgl_graph.analyzer.static.sites.search import find_sites

    searched = sources.turns.begin(lambda: find_sites(project))
    on_step("resolving the configuration")
    configuration = resolve(project, launch)

    def linker(entries: Sequence[str], capturing: Callable[[], frozenset[str]]) -> Linked:
        if not request.model_known:
            on_step(
                "the model's configuration is not known: every model class of the checkout is followed, which takes "
                "minutes and leaves much open; --model-config FILE is quicker and settles it"
            )
        linked = _link(project, configuration, entries, capturing, _now_and_then(on_step))
        project.note_lookups()
        return linked

    made, _ = build(project, request, configuration, linker, searched=searched, on_step=on_step)
    return made


def _request(
    options: MapOptions,
    env: Mapping[str, str],
    identity: CheckoutIdentity,
    device: DeviceFacts,
    model: Mapping[str, Any] | None,
) -> Request:
    from sgl_graph.analyzer.static.preflight import Request

    return Request(
        identity=identity,
        command=tuple(options.command.argv()),
        env=env,
        device=device,
        model_known=model is not None,
        budget=options.budget,
    )


def _now_and_then(on_step: Step) -> Callable[[int], None]:
    """Progress of linking, a line every few seconds."""
    last = time.monotonic()

    def progress(done: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _QUIET_SECONDS:
            last = time.monotonic()
            on_step(f"linking: {done} interpretations of functions so far")

    return progress


def _link(
    project: Project,
    configuration: Configuration,
    entries: Sequence[str],
    capturing: Callable[[], frozenset[str]],
    on_progress: Callable[[int], None],
) -> Linked:
    from sgl_graph.analyzer.static import profile
    from sgl_graph.analyzer.static.link.configured import ConfigurationOracle
    from sgl_graph.analyzer.static.link.driver import link
    from sgl_graph.analyzer.static.link.moments import Serving

    modules, functions = re.compile(profile.ANSWERED_MODULES), re.compile(profile.ANSWERED_FUNCTIONS)
    predicates, kinds = re.compile(profile.CAPTURE_PREDICATES), re.compile(profile.MODEL_PREDICATES)

    def asks(name: str) -> bool:
        module, _, function = name.partition(":")
        known = functions.match(function) and modules.match(module)
        return bool(known or predicates.match(name) or kinds.match(name))

    oracle = ConfigurationOracle(
        configuration,
        asks=asks,
        classes=profile.CONFIGURATION_CLASSES,
        settled_names=profile.SETTLED_NAMES,
        resolving=profile.EAGER_PACKAGES,
        apart=profile.PER_WORKER_ATTRIBUTES,
        views={view: profile.ARGUMENT_CLASS for view in profile.CONFIGURATION_VIEWS},
        reads=lambda name: profile.CAPTURE_PREDICATES_READ if predicates.match(name) else None,
        groups=profile.GROUP_CLASSES,
        ranks=(profile.ARGUMENT_CLASS, profile.RANK_FIELDS),
    )
    serving = Serving(re.compile(profile.EVENT_LOOPS), re.compile(profile.ADMIN_HANDLERS))
    return link(
        project,
        entries,
        oracle=oracle,
        kept_externals=profile.FOLLOWED_LIBRARIES,
        serving=serving,
        draft_parameters=profile.DRAFT_PARAMETERS,
        capturing=capturing,
        on_progress=on_progress,
    )


def _identity(location: Location, sources: CheckoutSources) -> CheckoutIdentity:
    known = checkout_identity(location.root, location.base, location.layout)
    index = {module_name(path)[0]: sources.digest(path) for path in sources.paths()}
    return CheckoutIdentity(
        root=str(location.root),
        layout=location.layout,
        commit=known.get("commit"),
        tree=known.get("tree"),
        dirty=known.get("dirty"),
        sglang_version=release_of(location.base),
        digest_=hashlib.sha256(canonical_json(index)).hexdigest(),
    )


def _model(options: MapOptions, env: Mapping[str, str]) -> Mapping[str, Any] | None:
    if options.model_config is not None:
        return _json_file(options.model_config, "--model-config")
    path = options.command.value(*MODEL_FLAGS)
    return _config_on_disk(path, env) if path else None


def _config_on_disk(path: str, env: Mapping[str, str]) -> Mapping[str, Any] | None:
    folder = local_model(path, {**os.environ, **env})
    try:
        return _json_file(folder / "config.json", path) if folder is not None else None
    except ConfigError:
        return None


def _json_file(path: Path, name: str) -> Mapping[str, Any]:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"{name} {path}: no plain file", hint="give the model's config.json")
        if status.st_size > _LARGEST_CONFIG:
            raise ConfigError(f"{name} {path}: too large for a config.json")
        data = parse_json(path.read_bytes(), finite=False)  # configurations of real models hold `Infinity`
    except OSError as error:
        raise ConfigError(f"{name} {path}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{name} {path}: not JSON: {error}") from error
    if not isinstance(data, dict):
        raise ConfigError(f"{name} {path}: not a model configuration", hint="give the model's config.json")
    return data


def _yaml(path: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(Path(path).read_text("utf-8"))
    except (OSError, yaml.YAMLError):
        return None


def _path_kind(path: str) -> str | None:
    place = Path(path).expanduser()
    return "folder" if place.is_dir() else "file" if place.is_file() else None


def _device(options: MapOptions) -> tuple[LaunchDevice | None, str]:
    if options.device is not None:
        return parse_device(options.device), "--device"
    from sgl_graph.runtime.planning import inspector_of

    inspector = inspector_of({**options.env, **options.command.env})
    if inspector not in (None, "cuda"):
        # Whatever it inspects has the interface of a CUDA device, and takes the place of the host's own.
        return LaunchDevice("cuda", "emulated"), f"inspector {inspector}"
    found = _detected()
    return (found, "NVML") if found is not None else (None, "unknown")


def _detected() -> LaunchDevice | None:
    """The first device that NVML shows; None where there is no NVML or no device."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        raw = pynvml.nvmlDeviceGetName(handle)
        name = raw.decode() if isinstance(raw, bytes) else str(raw)
        known = next((facts for facts in PRODUCTS.values() if facts.name == name), LaunchDevice("cuda", name))
        major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
        memory = int(pynvml.nvmlDeviceGetMemoryInfo(handle).total) >> 20
        count = int(pynvml.nvmlDeviceGetCount())
    except Exception:  # noqa: BLE001 - whatever a driver does, it only leaves the device unknown
        return None
    return replace(known, capability=(int(major), int(minor)), memory=memory, count=count)


def _facts(device: LaunchDevice | None, source: str, command: ServingCommand) -> DeviceFacts:
    if device is not None:
        capability = ".".join(map(str, device.capability)) if device.capability else device.architecture
        return DeviceFacts(
            name=device.name or device.kind,
            source=source,
            kind=device.kind,
            capability=capability,
            memory_gb=round(device.memory / 1024, 1) if device.memory else None,
        )
    named = command.value("--device")
    return DeviceFacts(name=None, source="the command's --device" if named else source, kind=named)


def default_jobs() -> int:
    """Parsers to run at once: one a core, at most two, so that memory stays small."""
    return min(2, os.cpu_count() or 1) if sys.platform != "win32" else 1
