"""Two launches' answers to the same request sets, compared at the tolerance of the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sgl_graph.analyzer.records.outputs import Number, OutputSet, RequestOutput
from sgl_graph.analyzer.records.plan import RequestSet, Tolerance


@dataclass(frozen=True)
class Difference:
    """The first position at which one request was answered differently."""

    set: str
    request: int
    position: int
    reference: int | None
    observed: int | None
    reference_logprob: Number
    observed_logprob: Number
    reference_top: list[tuple[int, Number]]
    observed_top: list[tuple[int, Number]]

    def record(self) -> dict[str, Any]:
        """For the ledger."""
        return {
            "set": self.set,
            "request": self.request,
            "position": self.position,
            "reference": self.reference,
            "observed": self.observed,
            "reference_logprob": self.reference_logprob,
            "observed_logprob": self.observed_logprob,
            "reference_top": [list(pair) for pair in self.reference_top],
            "observed_top": [list(pair) for pair in self.observed_top],
        }

    def text(self) -> str:
        """One line for people."""
        line = f"{self.set}, request {self.request}, position {self.position}: "
        line += f"token {self.reference} against {self.observed}"
        if self.reference_logprob is not None or self.observed_logprob is not None:
            line += f" (log-probability {_show(self.reference_logprob)} against {_show(self.observed_logprob)})"
        if self.reference_top:
            line += f"; top of the first: {_tops(self.reference_top)}"
        if self.observed_top:
            line += f"; top of the second: {_tops(self.observed_top)}"
        return line


@dataclass
class Comparison:
    """What was compared, what differed, and what could not be compared."""

    requests: int = 0
    tokens: int = 0
    differences: list[Difference] = field(default_factory=list)
    #: Missing sets, missing or short arrays, digests that do not hold.
    problems: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether every planned answer was there, whole and verified, on both sides."""
        return not self.problems and self.tokens > 0

    def where(self) -> frozenset[tuple[str, int]]:
        """(set, request) of each difference."""
        return frozenset((d.set, d.request) for d in self.differences)


def compare(
    reference: Mapping[str, OutputSet],
    observed: Mapping[str, OutputSet],
    planned: Sequence[RequestSet],
    tolerance: Tolerance,
    *,
    names: Mapping[str, str] | None = None,
) -> Comparison:
    """Compare the answers to the planned sets.

    Args:
        reference: Answers by set name.
        observed: Answers by set name.
        planned: The sets that both sides were asked; only these count, whatever else is there.
        tolerance: Kind and bounds.
        names: Name of the observed set for a planned one, where it differs (control sets, which may send companions).
    """
    result = Comparison()
    for request_set in planned:
        other = (names or {}).get(request_set.name, request_set.name)
        first, second = reference.get(request_set.name), observed.get(other)
        if first is None or second is None:
            result.problems.append(f"no answers to {request_set.name if first is None else other}")
            continue
        companions = names is not None
        problems = [
            *_unusable(first, request_set, tolerance),
            *_unusable(second, request_set, tolerance, companions=companions),
        ]
        if problems:
            result.problems.extend(problems)
            continue
        for left, right in zip(first.requests, second.requests[: len(first.requests)], strict=True):
            result.requests += 1
            result.tokens += len(left.output_ids)
            found = _first_difference(request_set.name, left, right, tolerance)
            if found is not None:
                result.differences.append(found)
    return result


def _unusable(answers: OutputSet, planned: RequestSet, tolerance: Tolerance, *, companions: bool = False) -> list[str]:
    """Why an answer set cannot be compared, in words; a control set may hold companions after the planned requests."""
    at = f"{answers.launch}/{answers.set}"
    problems = [f"{at}: {text}" for text in answers.problems()]
    size, indices = len(planned.requests), [r.index for r in answers.requests]
    if indices != list(range(len(indices))) or len(indices) < size or (len(indices) > size and not companions):
        return [*problems, f"{at}: {len(answers.requests)} answers to {len(planned.requests)} requests"]
    for request, answer in zip(planned.requests, answers.requests[:size], strict=True):
        if len(answer.output_ids) != request.output_len:
            problems.append(f"{at}: request {answer.index} has {len(answer.output_ids)} tokens of {request.output_len}")
        elif tolerance.kind != "token-ids" and (
            len(answer.logprobs) != request.output_len or any(value is None for value in answer.logprobs)
        ):
            problems.append(f"{at}: request {answer.index} lacks log-probabilities")
    return problems


def _first_difference(name: str, left: RequestOutput, right: RequestOutput, tolerance: Tolerance) -> Difference | None:
    for position in range(len(left.output_ids)):
        same = left.output_ids[position] == right.output_ids[position]
        if same and tolerance.kind != "token-ids":
            same = _close(left.logprobs[position], right.logprobs[position], tolerance)
        if not same:
            return Difference(
                set=name,
                request=left.index,
                position=position,
                reference=left.output_ids[position],
                observed=right.output_ids[position],
                reference_logprob=_at(left.logprobs, position),
                observed_logprob=_at(right.logprobs, position),
                reference_top=left.top[position] if position < len(left.top) else [],
                observed_top=right.top[position] if position < len(right.top) else [],
            )
    return None


def _close(reference: Number, observed: Number, tolerance: Tolerance) -> bool:
    # A NaN is never equal: two servers that both lost the number have not agreed on one.
    if "NaN" in (reference, observed):
        return False
    if isinstance(reference, str) or isinstance(observed, str) or reference is None or observed is None:
        return reference == observed
    if tolerance.kind == "bitwise":
        return reference.hex() == observed.hex()
    return abs(reference - observed) <= tolerance.atol + tolerance.rtol * abs(reference)


def _at(values: Sequence[Number], position: int) -> Number:
    return values[position] if position < len(values) else None


def _show(value: Number) -> str:
    return "unknown" if value is None else f"{value:.6g}" if isinstance(value, float) else value


def _tops(pairs: Sequence[tuple[int, Number]]) -> str:
    return ", ".join(f"{token} ({_show(value)})" for token, value in pairs[:3])
