"""Traffic records made concrete: deterministic token ids, adapters, batches, control and retry sets, within a budget."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sgl_graph.analyzer.errors import ConfigError
from sgl_graph.analyzer.records.plan import PlannedRequest, RequestSet

#: Small ids are often control tokens, and so are the last ones.
_FIRST_TOKEN = 10
_COMPANIONS = 3
DEFAULT_TRAFFIC: tuple[Mapping[str, Any], ...] = (
    {"name": "one", "concurrency": 1, "input_len": 16, "output_len": 8},
    {"name": "four", "concurrency": 4, "input_len": 16, "output_len": 8},
)


@dataclass(frozen=True)
class Model:
    """What requests must know of the model."""

    vocab_size: int
    context_length: int | None = None
    adapters: tuple[str, ...] = ()


@dataclass
class RequestSets:
    """The sets of a plan, and what was left out or changed, in words."""

    sets: list[RequestSet] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def named(self, *purposes: str) -> list[RequestSet]:
        """Sets of these purposes, in order."""
        return [s for s in self.sets if s.purpose in purposes]


def request_sets(
    traffic: Sequence[Mapping[str, Any]], model: Model, *, control: bool, budget: int | None
) -> RequestSets:
    """Concrete sets for traffic records.

    Args:
        traffic: Contract records {name, labels, concurrency, input_len, output_len, variant}.
        model: Vocabulary, context and adapters.
        control: Whether to add, for each set, the same requests under another batch composition.
        budget: Most requests of one launch, retries and control included; None for no limit.

    Raises:
        ConfigError: A record is malformed, or the budget does not hold the first set.
    """
    result = RequestSets()
    spent = 0
    for position, item in enumerate(traffic):
        made = _concrete(item, position, model, result.notes)
        if made is None:
            continue
        if any(made.name == other.name for other in result.sets):
            raise ConfigError(f"two request sets are named {made.name}")
        if budget is not None and spent + len(made.requests) > budget:
            labels = ", ".join(made.labels) or "no label"
            result.notes.append(
                f"{made.name} ({labels}) left out: {len(made.requests)} requests over the budget of {budget}"
            )
            continue
        spent += len(made.requests)
        result.sets.append(made)
    if not result.sets:
        raise ConfigError(
            "no request set can be sent: " + ("; ".join(result.notes) or "the traffic is empty"),
            hint="raise --budget, or give sets that fit with --traffic",
        )
    main = list(result.sets)
    _extend(result, [_control(s, model) for s in main] if control else [], spent, budget, "control")
    _extend(result, [_retry(s, model) for s in main if s.labels], spent, budget, "retry")
    return result


def adapters(values: Sequence[Any] | Mapping[str, Any] | None) -> tuple[str, ...]:
    """Names of the adapters of `--lora-paths` (`name=path`, a path, or JSON with lora_name), or of the setting as a map has it.

    Raises:
        ConfigError: JSON that is none.
    """
    names = []
    for value in values or ():
        if isinstance(value, str) and value.startswith("{"):
            try:
                value = json.loads(value)
            except ValueError as error:
                raise ConfigError(f"--lora-paths: not JSON: {value}") from error
        if isinstance(value, Mapping):
            found = value.get("lora_name") or value.get("lora_path")
            names += [str(found)] if found else [str(name) for name in value]
        else:
            names.append(str(value).split("=", 1)[0])
    return tuple(names)


def _concrete(item: Mapping[str, Any], position: int, model: Model, notes: list[str]) -> RequestSet | None:
    name = _file_name(str(item.get("name") or f"set{position}"))
    concurrency = _size(item, "concurrency", 1)
    input_len, output_len = _size(item, "input_len", 16), _size(item, "output_len", 8)
    variant = item.get("variant")
    labels = [str(label) for label in item.get("labels") or ()]
    if isinstance(variant, str) and re.search(r"image|video|audio|vit|vision", variant):
        notes.append(f"{name} ({', '.join(labels)}) not sent: requests by token ids carry no {variant}")
        return None
    if model.context_length is not None and input_len + output_len > model.context_length:
        shorter = model.context_length - output_len
        if shorter < 1:
            notes.append(f"{name} not sent: {output_len} tokens do not fit the context of {model.context_length}")
            return None
        notes.append(f"{name}: input shortened from {input_len} to {shorter} tokens to fit the context")
        input_len = shorter
    chosen = _adapters_for(variant if isinstance(variant, str) else None, concurrency, model, notes, name)
    if chosen is None:
        return None
    requests = [
        PlannedRequest(input_ids=_tokens(f"{name}/{i}", input_len, model), output_len=output_len, lora=chosen[i])
        for i in range(concurrency)
    ]
    logprobs = item.get("logprobs") is not False
    variant = variant if isinstance(variant, str) else None
    return RequestSet(name=name, labels=labels, variant=variant, requests=requests, logprobs=logprobs)


def _adapters_for(
    variant: str | None, count: int, model: Model, notes: list[str], name: str
) -> list[str | None] | None:
    """The adapter of each request; None when the set needs adapters that are not there."""
    plain = variant is None or "lora" not in variant or variant.startswith("no")
    if plain and not (variant and variant.startswith("mix")):
        return [None] * count
    if not model.adapters:
        notes.append(f"{name} not sent: variant {variant} needs an adapter, and --lora-paths names none")
        return None
    choices: list[str | None] = [*model.adapters]
    if variant and variant.startswith("mix"):
        choices.append(None)
    return [choices[i % len(choices)] for i in range(count)]


def _control(main: RequestSet, model: Model) -> RequestSet:
    """The same requests in other batches: one by one, or a single one among companions."""
    name = f"{main.name}~control"
    if len(main.requests) > 1:
        return main.model_copy(update={"name": name, "send": "single", "purpose": "control", "of": main.name})
    first = main.requests[0]
    companions = [
        first.model_copy(update={"input_ids": _tokens(f"{name}/{i}", len(first.input_ids), model)})
        for i in range(_COMPANIONS)
    ]
    return main.model_copy(
        update={"name": name, "purpose": "control", "of": main.name, "requests": [first, *companions]}
    )


def _retry(main: RequestSet, model: Model) -> RequestSet:
    """Fresh prompts, more tokens, no log-probabilities: the conditions that most often keep a graph from running."""
    longest = max(len(r.input_ids) for r in main.requests)
    room = None if model.context_length is None else model.context_length - longest
    requests = [
        r.model_copy(
            update={
                "input_ids": _tokens(f"{main.name}~retry/{i}", len(r.input_ids), model),
                "output_len": min(r.output_len * 2, room) if room is not None else r.output_len * 2,
            }
        )
        for i, r in enumerate(main.requests)
    ]
    return main.model_copy(
        update={
            "name": f"{main.name}~retry",
            "purpose": "retry",
            "of": main.name,
            "requests": requests,
            "logprobs": False,
        }
    )


def _extend(result: RequestSets, extra: Sequence[RequestSet], spent: int, budget: int | None, what: str) -> None:
    for one in extra:
        if budget is not None and spent + len(one.requests) > budget:
            result.notes.append(f"no {what} for {one.of}: over the budget of {budget} requests a launch")
            continue
        spent += len(one.requests)
        result.sets.append(one)


def _tokens(seed: str, count: int, model: Model) -> list[int]:
    last = max(int(model.vocab_size * 0.9), 1)
    first = min(_FIRST_TOKEN, last - 1)
    source = random.Random(hashlib.sha256(seed.encode()).digest())
    return [source.randrange(first, last) for _ in range(count)]


def _size(item: Mapping[str, Any], name: str, default: int) -> int:
    value = item.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"traffic {item.get('name')}: {name} must be a positive whole number, not {value!r}")
    return value


def _file_name(name: str) -> str:
    clean = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:60]
    return clean or "set"
