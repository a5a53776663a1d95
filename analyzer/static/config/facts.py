"""The facts of one launch as the evaluated source meets them: environment, device, model, files, installed packages."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.config import model as models
from sgl_graph.analyzer.static.config import torch_facts
from sgl_graph.analyzer.static.config.device import DeviceFacts
from sgl_graph.analyzer.static.config.possibilities import deps_of, options_of, single, taint, unknown
from sgl_graph.analyzer.static.config.process_groups import group_of
from sgl_graph.analyzer.static.config.program import ClassV, FunctionV, Instance
from sgl_graph.analyzer.static.config.registry import CALLS, CONSTANTS
from sgl_graph.analyzer.static.config.values import ABSENT, NO_DEPS, Deps, DictV, External, Value

# Python packages that every server has: it does not start without them.
_ALWAYS = frozenset(
    [
        "torch",
        "transformers",
        "numpy",
        "sglang",
        "pydantic",
        "fastapi",
        "uvicorn",
        "zmq",
        "msgspec",
        "requests",
        "tqdm",
        "psutil",
        "packaging",
        "yaml",
        "orjson",
        "uvloop",
        "aiohttp",
        "huggingface_hub",
        "tokenizers",
        "safetensors",
        "PIL",
        "IPython",
        "setproctitle",
        "triton",
        "filelock",
        "typing_extensions",
    ]
)
# Packages that come with a device's kind: declared by the release for CUDA, part of the vendor's image elsewhere.
_BY_KIND = {
    "cuda": frozenset({"flashinfer", "sgl_kernel", "deep_gemm", "cuda", "pynvml", "flash_attn_interface"}),
    "hip": frozenset({"aiter", "sgl_kernel"}),
    "npu": frozenset({"torch_npu", "sgl_kernel_npu"}),
    "musa": frozenset({"torchada"}),
    "hpu": frozenset({"habana_frameworks"}),
}
_ONLY_KIND = {"torch_npu": "npu", "torchada": "musa", "habana_frameworks": "hpu", "flashinfer": "cuda", "aiter": "hip"}


class LaunchFacts:
    """What is known before the launch. All of it may be missing; the answers are then unknown.

    Attributes:
        environment: variables of the server process, those of `--env` and of the command included.
        device: facts of the device, None when unknown.
    """

    def __init__(
        self,
        *,
        environment: Mapping[str, str] | None = None,
        device: DeviceFacts | None = None,
        model_configs: Callable[[str], Mapping[str, Any] | None] = lambda path: None,
        path_kind: Callable[[str], str | None] = lambda path: None,
        packages: Mapping[str, bool] | None = None,
        unknown_environment: frozenset[str] = frozenset(),
    ) -> None:
        self.device = device
        self._model_configs = model_configs
        self._path_kind = path_kind
        self._packages = dict(packages or {})
        named = {name: taint(value, frozenset({f"env:{name}"})) for name, value in (environment or {}).items()}
        for name in unknown_environment:
            named[name] = unknown([f"env:{name}"])
        self.environment = DictV(named)
        #: Model paths whose configuration was asked for and not found.
        self.missing_models: dict[str, None] = {}
        self._loaded: dict[str, Instance] = {}

    # -- attributes and calls outside the checkout

    def attribute(self, owner: External, name: str) -> Value:
        """Attribute of something outside the checkout: a known constant, or the access path."""
        path = f"{owner.path}.{name}"
        if path in CONSTANTS:
            return CONSTANTS[path]
        if path == "os.environ":
            return self.environment
        if path.startswith("torch."):
            found = torch_facts.attribute(self.device, path)
            if found is not None:
                return found
        return External(path)

    def instance_attribute(self, instance: Instance, name: str) -> Value:
        """Attribute of an object whose class is outside the checkout; ABSENT when it has none."""
        if instance.cls == models.CONFIG_CLASS:
            return models.default_attribute(instance, name)
        return ABSENT

    def call(self, machine: Any, function: External, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        """What a function outside the checkout returns where a fact decides it, else ABSENT."""
        if function.path.startswith("torch."):
            found = torch_facts.call(self.device, function.path)
            if found is not None:
                return found
        return ABSENT

    def replaced(self, machine: Any, function: FunctionV, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        """The result of a function of the checkout that reads the machine or the disk, else ABSENT."""
        name = function.facts.name
        if name in profile.MEMORY_FUNCTIONS:
            device = self.device
            if device is None or device.memory is None:
                return unknown(["device"], machine.place())
            return torch_facts.known(float(device.memory))
        if name == profile.FIELD_REGISTRATION and len(arguments) >= 2:
            cls = single(arguments[1])
            if type(cls) is ClassV:
                from sgl_graph.analyzer.static.config.annotated import register_fields

                only = keywords.get("fields", arguments[2] if len(arguments) > 2 else None)
                register_fields(machine, arguments[0], cls, machine.elements(only) if only is not None else None)
                return None
        if name == "__init__" and function.owner is not None and function.owner.qualname == profile.MODEL_CLASS:
            return self._unknown_model(function, arguments, keywords)
        if name in profile.GROUP_SIZES or function.qualname in profile.SIZE_ACCESSORS:
            return group_of(machine, function)
        if name in profile.MODEL_CONFIG_LOADERS and profile.MODEL_CONFIG_MODULES in function.module.name:
            given = arguments[0] if arguments else keywords.get("model", ABSENT)
            overrides = keywords.get("model_override_args")
            return self.model_config(given, overrides)
        return ABSENT

    # -- models, files, packages

    def _unknown_model(self, function: FunctionV, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        """A model of which no configuration is known: nothing about it is, and evaluating its code would say no more."""
        instance = single(arguments[0])
        given = arguments[1] if len(arguments) > 1 else keywords.get("model_path", keywords.get("path", ABSENT))
        path = single(given)
        if isinstance(path, str) and self._model_configs(path) is not None:
            return ABSENT
        if isinstance(path, str):
            self.missing_models[path] = None
        if type(instance) is not Instance:
            return ABSENT
        instance.opaque = models.MODEL | deps_of(given)
        instance.attrs["hf_config"] = models.configuration(None)
        for name, value in keywords.items():
            instance.attrs.setdefault(name, value)
        return None

    def model_config(self, path: Value, overrides: Value = None) -> Value:
        """The configuration object for a model path."""
        plain = single(path)
        if not isinstance(plain, str):
            return models.configuration(None, models.MODEL | deps_of(path))
        loaded = self._loaded.get(plain)
        if loaded is None:
            data = self._model_configs(plain)
            if data is None:
                self.missing_models[plain] = None
            loaded = self._loaded[plain] = models.configuration(data)
        if options_of(overrides)[0] and type(single(overrides)) is DictV and single(overrides).items:
            from sgl_graph.analyzer.static.config.records import deep_copy

            loaded = deep_copy(loaded, {})
            models.apply_overrides(loaded, overrides)
        return loaded

    def model_unknown(self, path: str | None) -> bool:
        """Whether nothing is known of the model that is served."""
        if path is None or self._model_configs(path) is not None:
            return False
        self.missing_models[path] = None
        return True

    def path_is(self, path: str, kinds: tuple[str, ...]) -> Value:
        """Whether a path is a `file` or a `folder`, as seen from here.

        A model whose configuration is known but that lies nowhere here is one that the server fetches by name.
        """
        kind = self._path_kind(path)
        if kind is not None:
            return kind in kinds
        if path in self._loaded or self._model_configs(path) is not None:
            return False
        return taint(False, frozenset({"disk"}))

    def installed(self, package: str) -> tuple[bool | None, Deps]:
        """Whether a package can be imported, and what that rests on."""
        if package in sys.stdlib_module_names or package in _ALWAYS:
            return True, NO_DEPS
        if package in self._packages:
            return self._packages[package], NO_DEPS
        device = self.device
        only = _ONLY_KIND.get(package)
        if device is not None and only is not None and device.kind != only:
            return False, frozenset({"device"})
        if device is not None and package in _BY_KIND.get(device.kind, ()):
            return True, frozenset({"device", f"package:{package}"})
        return None, frozenset({f"package:{package}"})

    @property
    def natives(self) -> int:
        """Number of functions outside the checkout that are modelled."""
        return len(CALLS)
