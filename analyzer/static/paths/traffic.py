"""What to expect of a run and the least traffic that shows it: labels without sizes, and the requests that replay them."""

from __future__ import annotations

from collections.abc import Sequence

from sgl_graph.analyzer.records.pathmap import Label, PathEntry, TrafficItem

#: Long enough for lazily captured graphs (a handful of warm-ups) to be replayed too.
OUTPUT_LEN = 8
INPUT_LEN = 16
#: Families that one text request replays: its prompt, its decode steps, and what a draft model does with them.
_IMAGE = "vit"
_ADAPTER_VARIANTS = {"lora"}
#: Variants of request sets in which some request uses an adapter.
USING_ADAPTERS = frozenset({*_ADAPTER_VARIANTS, "mixed"})
#: Requests of one set, at most: each adapter once, and one request without.
_MOST_MIXED = 8


def labels_of(paths: Sequence[PathEntry]) -> tuple[str, ...]:
    """Labels that this configuration is expected to replay, as `--expect-labels` takes them.

    Only paths that certainly run, by start-up or by a request, are expected; nothing is made up for the rest.
    """
    found: list[str] = []
    for path in paths:
        if path.reachable != "yes" or path.trigger == "admin" or path.family == "other":
            continue
        expected = (variant for variant in path.label.variants if variant not in path.label.variants_open)
        found += [path.name if variant is None else f"{path.name}/{variant}" for variant in expected]
    return tuple(sorted(set(found)))


def either_way(
    paths: Sequence[PathEntry], labels: Sequence[str], cases: Sequence[Sequence[Sequence[str]]]
) -> tuple[str, ...]:
    """The labels, and those that are to be expected whichever way a test falls that start-up decides.

    Args:
        paths: the capture paths as long as no test is decided; a label that none of them has is nobody's.
        labels: what `labels_of` expects.
        cases: per test, what is to be expected where it holds, and where it does not.
    """
    both = [set(one) & set(other) & _by_label(paths).keys() for one, other in cases]
    return tuple(sorted(set(labels).union(*both)))


def _by_label(paths: Sequence[PathEntry]) -> dict[str, tuple[PathEntry, str | None]]:
    """The path and the variant of every label that paths have."""
    return {
        (path.name if variant is None else f"{path.name}/{variant}"): (path, variant)
        for path in paths
        for variant in path.label.variants
    }


def traffic_for(
    paths: Sequence[PathEntry], labels: Sequence[str], budget: int | None, adapters: int = 0
) -> tuple[TrafficItem, ...]:
    """The least request sets that replay the labels, within a budget of requests; with adapters where a launch names some.

    Args:
        paths: the capture paths.
        labels: what `labels_of` expects.
        budget: most requests in all, None for no limit.
        adapters: adapters that the launch loads. Where no label tells them apart, one graph serves batches with and without: it reads
            the adapters' buffers by address, and a batch that uses them replays the same labels once more.
    """
    by_label = _by_label(paths)
    groups: dict[str | None, list[str]] = {}
    for label in labels:
        path, variant = by_label[label]
        if path.family == _IMAGE:
            groups.setdefault("image", []).append(label)
        elif variant in _ADAPTER_VARIANTS:
            groups.setdefault(variant, []).append(label)
        else:
            groups.setdefault(None, []).append(label)
    items: list[TrafficItem] = []
    for variant, group in sorted(groups.items(), key=lambda pair: (pair[0] is not None, pair[0] or "")):
        if budget is not None and len(items) >= budget:
            break
        items.append(
            TrafficItem(
                name=variant or "text",
                labels=tuple(group),
                # A label has no size: the smallest batch replays it, padded to a captured size.
                concurrency=1,
                input_len=_input_len([by_label[label][0] for label in group]),
                output_len=OUTPUT_LEN,
                variant=variant,
            )
        )
    mixed = min(adapters + 1, _MOST_MIXED)
    shared = tuple(label for label in groups.get(None, ()) if by_label[label][1] is None)
    told_apart = not groups.keys().isdisjoint(_ADAPTER_VARIANTS)
    if adapters and shared and not told_apart and (budget is None or len(items) + mixed <= budget):
        again = {"name": "adapters", "labels": shared, "concurrency": mixed, "variant": "mixed"}
        items.append(items[0].model_copy(update=again))
    return tuple(items)


def uncovered(labels: Sequence[str], items: Sequence[TrafficItem]) -> tuple[str, ...]:
    """Expected labels that no item of the traffic is for."""
    covered = {label for item in items for label in item.labels}
    return tuple(label for label in labels if label not in covered)


def _input_len(paths: Sequence[PathEntry]) -> int:
    """A prompt that falls into a captured prefill size of every path that has some: a captured size needs no padding."""
    sized = [path.label for path in paths if path.family.startswith("prefill") and path.label.buckets]
    if not sized:
        return INPUT_LEN
    sizes = sorted({size for label in sized for size in label.buckets or ()})
    wanted = [*(size for size in sizes if size >= INPUT_LEN), *reversed(sizes)]
    return next((size for size in wanted if all(_replays(label, size) for label in sized)), min(INPUT_LEN, sizes[-1]))


def _replays(label: Label, tokens: int) -> bool:
    """Whether a prompt of this length is padded to a captured size rather than left to eager execution."""
    largest = max(label.buckets or (0,))
    return tokens <= largest and not any(first <= tokens <= last for first, last in label.left_to_eager)
