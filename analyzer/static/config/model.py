"""A model's `config.json` as the object that the checkout gets from its configuration loader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sgl_graph.analyzer.static.config.possibilities import single, taint, unknown
from sgl_graph.analyzer.static.config.program import Instance
from sgl_graph.analyzer.static.config.python_values import from_python
from sgl_graph.analyzer.static.config.values import ABSENT, Deps, DictV, External, Native, Value

CONFIG_CLASS = External("transformers.PretrainedConfig")
MODEL: Deps = frozenset({"model"})
# Nested dictionaries that stay dictionaries; another `..._config` that describes a model becomes a configuration of its own.
_PLAIN_DICTIONARIES = {"quantization_config", "compression_config", "sparse_attention_config"}
_OF_MODELS = frozenset(
    {"model_type", "architectures", "hidden_size", "num_hidden_layers", "d_model", "embed_dim", "depth"}
)
# Parts of a model that work on text.
_TEXT_PARTS = ("decoder", "generator", "text_config", "text_encoder")
# Attributes that every configuration has, whatever its file says.
_DEFAULTS: dict[str, Any] = {
    "is_encoder_decoder": False,
    "architectures": None,
    "tie_word_embeddings": True,
    "dtype": None,
    "torch_dtype": None,
    "model_type": "",
    "return_dict": True,
    "output_hidden_states": False,
    "name_or_path": "",
    "_name_or_path": "",
    "pruned_heads": {},
    "id2label": {0: "LABEL_0", 1: "LABEL_1"},
    "num_labels": 2,
    "transformers_version": None,
}


def configuration(data: Mapping[str, Any] | None, deps: Deps = MODEL) -> Instance:
    """The configuration object of a `config.json`; of unknown content when there is none."""
    if data is None:
        return Instance(CONFIG_CLASS, {}, deps)
    attrs: dict[str, Value] = {}
    for name, value in data.items():
        nested = isinstance(value, Mapping) and name.endswith("_config") and name not in _PLAIN_DICTIONARIES
        if nested and (not value or not _OF_MODELS.isdisjoint(value)):
            attrs[name] = configuration(value, deps)
        else:
            attrs[name] = taint(from_python(value), deps)
    for old, new in (("torch_dtype", "dtype"), ("dtype", "torch_dtype")):
        if old in attrs and new not in attrs:
            attrs[new] = attrs[old]
    return Instance(CONFIG_CLASS, attrs)


def is_of_class(instance: Instance, model_type: Value) -> bool:
    """Whether a configuration is an object of the class that serves this type of model: loaders choose the class by it."""
    own = single(instance.attrs.get("model_type", ABSENT))
    return instance.cls == CONFIG_CLASS and isinstance(own, str) and own != "" and own == single(model_type)


def default_attribute(instance: Instance, name: str) -> Value:
    """What a configuration answers for an attribute that its file does not name; ABSENT when it has none."""
    if instance.opaque is not None:
        return ABSENT
    if name in _DEFAULTS:
        return from_python(_DEFAULTS[name])
    if name == "get_text_config":
        return Native(name, lambda machine, arguments, keywords: _text_config(instance))
    return ABSENT


def _text_config(instance: Instance) -> Value:
    """The configuration of the text part, where a model has one part for text; the whole otherwise."""
    parts = [value for name in _TEXT_PARTS if type(value := single(instance.attrs.get(name, ABSENT))) is Instance]
    return parts[0] if len(parts) == 1 else instance if not parts else unknown(MODEL)


def apply_overrides(instance: Instance, overrides: Value) -> None:
    """What `--json-model-override-args` does to a configuration."""
    table = single(overrides)
    if type(table) is not DictV:
        return
    for name, value in table.items.items():
        current = instance.attrs.get(name, ABSENT)
        inner = single(value)
        if type(inner) is DictV and type(current) is Instance:
            apply_overrides(current, inner)
        elif type(inner) is DictV and type(single(current)) is DictV and str(name).startswith("rope_"):
            instance.attrs[name] = DictV({**single(current).items, **inner.items})
        else:
            instance.attrs[name] = value
