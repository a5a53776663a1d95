"""A component that no path's code is seen to come to may be any path's."""

from __future__ import annotations

from typing import Any

from sgl_graph.analyzer.records.pathmap import CodeRef, Component, PathEntry
from sgl_graph.analyzer.static.paths.unseen import with_unseen

_PLACE = {"file": "a.py", "line": 1}


def component(kind: Any, name: str) -> Component:
    return Component(kind=kind, class_=name, memory="caching allocator", reachable="yes", **_PLACE)


def path(name: str, *components: Component) -> PathEntry:
    at = CodeRef(file="b.py", line=2, qualname="b:f")
    return PathEntry.model_construct(
        name=name,
        components=tuple(one.model_copy(update={"reached_at": at}) for one in components),
        depends_on_unconfirmed=("x",),
    )


ATTENTION, ADAPTERS = component("attention", "Paged"), component("lora", "Twin")
QUEUE = component("communication", "Queue")


def found(*paths: PathEntry, unconfirmed: frozenset[str] = frozenset()) -> list[tuple[list[tuple[str, bool]], Any]]:
    made = with_unseen(paths, [ATTENTION, QUEUE, ADAPTERS], unconfirmed)
    return [([(c.class_, c.reached_at is not None) for c in p.components], p.depends_on_unconfirmed) for p in made]


def test_what_no_path_comes_to_is_listed_at_each_without_a_place() -> None:
    assert found(path("decode", ATTENTION), path("prefill")) == [
        ([("Paged", True), ("Twin", False)], ("x",)),
        ([("Twin", False)], ("x",)),
    ]


def test_what_one_path_comes_to_is_not_the_others() -> None:
    assert found(path("decode", ATTENTION, ADAPTERS), path("prefill")) == [
        ([("Paged", True), ("Twin", True)], ("x",)),
        ([], ("x",)),
    ]


def test_what_chose_it_is_among_what_the_path_rests_on() -> None:
    paths = found(path("decode", ATTENTION), unconfirmed=frozenset(("lora_backend", "attention_backend")))
    assert paths == [([("Paged", True), ("Twin", False)], ("lora_backend", "x"))]
