"""Labels, traffic, gaps and differences from paths made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from sgl_graph.analyzer.mapdiff import difference
from sgl_graph.analyzer.records.pathmap import (
    CheckoutIdentity,
    CodeRef,
    ConfigValue,
    DeviceFacts,
    Gap,
    Injection,
    Label,
    PathEntry,
    PathMap,
    Reason,
    Site,
    Starts,
    TrafficItem,
    Unresolved,
    WorkerEntry,
)
from sgl_graph.analyzer.static.paths.gaps import gaps_of
from sgl_graph.analyzer.static.paths.settings import Settings
from sgl_graph.analyzer.static.paths.traffic import either_way, labels_of, traffic_for, uncovered
from sgl_graph.analyzer.static.rules import RULES


def path(name: str = "target:decode", **changes: Any) -> PathEntry:
    values: dict[str, Any] = {
        "id": f"{name}:Runner:Table",
        "family": name.partition(":")[2],
        "worker": "scheduler",
        "runner": "Runner",
        "backend": "Table",
        "name": name,
        "sites": ("a",),
        "label": Label(key="Key(size)", expression="key", buckets=(1, 2), enumerable=True),
        "reachable": "yes",
        "trigger": "startup",
        "inspectability": "lifetime-inspectable",
    }
    return PathEntry(**{**values, **changes})


def twins() -> Label:
    return Label(key="Key(size, variant)", expression="key", variants=("lora", "nolora"), buckets=(1,))


def test_labels_are_of_paths_that_certainly_run() -> None:
    paths = [
        path(label=twins()),
        path("target:prefill-full", reachable="unresolved"),
        path("target:vit", trigger="request"),
        path("target:verify", trigger="admin"),
    ]
    assert labels_of(paths) == ("target:decode/lora", "target:decode/nolora", "target:vit")


def test_a_label_is_expected_that_both_outcomes_of_a_test_give() -> None:
    holds, fails = ("target:decode", "draft:draft-extend"), ("target:decode", "draft:draft-extend", "target:vit")
    paths = [path(), path("draft:draft-extend")]
    assert either_way(paths, ("target:decode",), [(holds, fails)]) == ("draft:draft-extend", "target:decode")
    assert either_way(paths, ("target:decode",), [(holds, ()), ((), fails)]) == ("target:decode",)
    assert either_way(paths, ("target:decode",), []) == ("target:decode",)
    # A path that bears another name until the test is decided: no request could be planned for the label.
    assert either_way(paths[:1], ("target:decode",), [(holds, fails)]) == ("target:decode",)


def test_traffic_is_the_least_that_covers_the_labels() -> None:
    paths = [
        path(label=twins()),
        path("target:prefill-full", label=Label(key="Key", expression="key", buckets=(4, 8))),
        path("target:vit", trigger="request"),
    ]
    labels = labels_of(paths)
    items = traffic_for(paths, labels, None)
    assert [(item.name, item.variant, item.labels) for item in items] == [
        ("text", None, ("target:decode/nolora", "target:prefill-full")),
        ("image", "image", ("target:vit",)),
        ("lora", "lora", ("target:decode/lora",)),
    ]
    assert all(item.concurrency == 1 for item in items)
    assert items[0].input_len == 8
    assert uncovered(labels, items) == ()
    assert uncovered(labels, traffic_for(paths, labels, 1)) == ("target:decode/lora", "target:vit")


def test_adapters_that_a_launch_loads_are_sent_where_no_label_tells_them_apart() -> None:
    paths = [path(), path("target:vit", trigger="request")]
    labels = labels_of(paths)

    def sets(budget: int | None, adapters: int) -> list[tuple[str, str | None, int | None, tuple[str, ...]]]:
        items = traffic_for(paths, labels, budget, adapters)
        return [(item.name, item.variant, item.concurrency, item.labels) for item in items]

    text, image = ("text", None, 1, ("target:decode",)), ("image", "image", 1, ("target:vit",))
    assert sets(None, 0) == [text, image]
    assert sets(None, 2) == [text, image, ("adapters", "mixed", 3, ("target:decode",))]
    assert sets(None, 40)[-1][2] == 8
    assert sets(4, 2) == [text, image]  # two requests and a batch of three are more than four
    assert sets(5, 2)[-1][0] == "adapters"
    # A request with an adapter is sent for the label: its prompt goes through the other path as well.
    twin = [path(label=twins()), path("target:prefill-full")]
    assert [item.name for item in traffic_for(twin, labels_of(twin), None, 2)] == ["text", "lora"]


def test_a_launch_of_adapters_whose_traffic_uses_none_is_noted() -> None:
    def noted(traffic: Sequence[TrafficItem], **changes: Any) -> list[str]:
        return [gap.severity for gap in gaps(traffic=traffic, **changes) if gap.code == "SGG055"]

    labels = ["target:decode"]
    without, using = traffic_for([path()], labels, None), traffic_for([path()], labels, None, 1)
    assert noted(without, adapters=True) == ["note"]
    assert noted(using, adapters=True) == noted(without) == noted((), adapters=True, labels=()) == []
    twin = [path(label=twins())]
    assert noted(traffic_for(twin, labels_of(twin), None), adapters=True) == []


@pytest.mark.parametrize(
    ("enabled", "named", "expected"),
    [
        (True, [{"lora_name": "a"}, {"lora_name": "b"}], 2),
        (True, {"a": "/a"}, 1),
        (True, None, 0),
        (False, ["a=/a"], 0),
        (None, ["a=/a"], 0),
        (True, "unknown", 0),
    ],
)
def test_adapters_count_where_the_launch_serves_them(enabled: object, named: object, expected: int) -> None:
    settings = Settings(None)
    settings.values = {"enable_lora": enabled, "lora_paths": named}
    assert settings.adapters == expected
    assert settings.serves_adapters is (enabled is True)


def test_variants_that_only_the_server_decides_on_are_told_and_not_expected() -> None:
    label = Label(key="Key", expression="key", variants=(None, "parts:1"), variants_open=("parts:1",), buckets=(8,))
    paths = [path("target:prefill-full", label=label)]
    labels = labels_of(paths)
    assert labels == ("target:prefill-full",)
    (note,) = [gap for gap in gaps(paths=tuple(paths)) if gap.code == "SGG054"]
    assert note.severity == "note" and "parts:1" in note.text
    assert not [gap for gap in gaps(paths=(path(label=twins()),)) if gap.code == "SGG054"]


def sparse(**changes: Any) -> Label:
    """Prefill sizes between which too much padding would be needed."""
    by = CodeRef(file="runner.py", line=7, qualname="runner:Runner.fits")
    ranges = ((1, 7), (17, 31), (65, 127))
    values = {"key": "K", "expression": "k", "buckets": (16, 64, 256), "left_to_eager": ranges, "left_by": by}
    return Label(**{**values, **changes})


def test_planned_prompts_are_of_a_length_that_is_replayed() -> None:
    def length(*labels: Label) -> int:
        roles = zip(("target", "draft"), labels, strict=False)
        paths = [path(f"{role}:prefill-breakable", label=label) for role, label in roles]
        return traffic_for(paths, labels_of(paths), None)[0].input_len

    assert length(sparse()) == 16
    assert length(sparse(buckets=(100, 200), left_to_eager=((1, 49),))) == 100
    assert length(sparse(buckets=(4, 8), left_to_eager=())) == 8
    # The other path leaves 16 to eager execution: the next size suits both.
    assert length(sparse(), sparse(buckets=(64,), left_to_eager=((1, 31),))) == 64


def test_batches_that_fall_between_captured_sizes_are_noted_with_the_line_that_decides() -> None:
    paths = [path("target:prefill-breakable", label=sparse())]
    note = next(gap for gap in gaps(paths=paths, labels=labels_of(paths)) if gap.code == "SGG053")
    assert note.severity == "note"
    assert "1 to 7, 17 to 31, 65 to 127" in note.text and "runner.py:7" in note.text
    few = [path("target:prefill-breakable", label=sparse(left_to_eager=((1, 1),)))]
    assert not any(gap.code == "SGG053" for gap in gaps(paths=few, labels=labels_of(few)))


def gaps(**changes: Any) -> tuple[Gap, ...]:
    values: dict[str, Any] = {
        "starts": Starts(),
        "device": DeviceFacts(name="NVIDIA H200", source="--device", kind="cuda"),
        "model_known": True,
        "workers": (),
        "sites": (),
        "paths": (path(),),
        "unresolved": (),
        "labels": ("target:decode",),
        "traffic": traffic_for([path()], ["target:decode"], None),
        "problems": {},
        "cut_short": {},
    }
    return gaps_of(**{**values, **changes})


def test_a_plain_path_with_known_facts_has_no_gap() -> None:
    assert gaps() == ()


def test_material_gaps_come_first_and_name_their_code() -> None:
    reason = Reason(text="memory of IPC", code="SGG020", file="sglang/srt/x.py", line=3)
    found = gaps(
        model_known=False,
        device=DeviceFacts(name=None, source="unknown"),
        workers=(
            WorkerEntry(role="scheduler", count=1, source="", injection=Injection(reaches="unresolved", why="unclear")),
        ),
        paths=(path(inspectability="partial", reasons=(reason,)), path("target:vit", trigger="request")),
        labels=("target:decode", "target:vit"),
        problems={"sglang/srt/bad.py": "line 3: no"},
        cut_short={"sglang/srt/long.py": "left"},
    )
    assert [(gap.severity, gap.code) for gap in found] == [
        ("material", "SGG042"),
        ("material", "SGG043"),
        ("material", "SGG030"),
        ("material", "SGG020"),
        ("material", "SGG050"),
        ("note", "SGG052"),
        ("note", "SGG061"),
        ("note", "SGG063"),
    ]
    assert "target:decode on Table is partial: memory of IPC" in found[3].text
    assert "target:vit" in found[4].text


def test_a_folder_that_nobody_could_list_is_a_material_gap() -> None:
    [found] = gaps(problems={"sglang/srt/locked": "cannot be listed: Permission denied"})
    assert (found.severity, found.code) == ("material", "SGG061")
    assert found.text == "folder sglang/srt/locked could not be read: cannot be listed: Permission denied"


def test_a_name_that_is_open_twice_is_listed_once() -> None:
    items = [Unresolved(what=what, settle_with="--assume") for what in ("device", "max_lora_rank", "device")]
    assert [gap.text for gap in gaps(unresolved=items)] == [
        "2 values are settled only by the server: device, max_lora_rank"
    ]


@pytest.mark.parametrize(
    ("family", "text"),
    [
        ("decode", "target:decode: its sizes are not settled, the set of labels is open"),
        ("vit", "target:decode: its keys K come from the requests, the set of labels is open"),
    ],
)
def test_why_labels_are_open_is_said(family: str, text: str) -> None:
    open_ = path(family=family, label=Label(key="K", expression="", enumerable=False))
    [found] = gaps(paths=[open_])
    assert (found.code, found.text) == ("SGG051", text)


def test_codes_are_explained_in_order() -> None:
    assert list(RULES) == sorted(RULES)


def test_a_server_that_does_not_start_has_that_one_gap() -> None:
    found = gaps(starts=Starts(value="no", why="removed", file="sglang/srt/x.py", line=7))
    assert [(gap.severity, gap.code) for gap in found] == [("material", "SGG060")]
    assert "removed (sglang/srt/x.py:7)" in found[0].text


def whole(*paths: PathEntry, **changes: Any) -> PathMap:
    values: dict[str, Any] = {
        "checkout": CheckoutIdentity(root="/x", layout="folder", digest_="0"),
        "command": ("sglang", "serve"),
        "device": DeviceFacts(name=None, source="unknown"),
        "paths": paths,
        "labels": labels_of(paths),
    }
    return PathMap(**{**values, **changes})


def test_a_difference_names_what_changed_and_how() -> None:
    old = whole(path(), path("target:prefill-full"))
    fewer = Label(key="Key(size)", expression="key", buckets=(1,), enumerable=True)
    new = whole(path(label=fewer, inspectability="partial"), path("draft:draft"))
    assert difference(old, new).lines() == [
        "- path: target:prefill-full:Runner:Table",
        "+ path: draft:draft:Runner:Table",
        "~ path: target:decode:Runner:Table: class: lifetime-inspectable -> partial",
        "~ path: target:decode:Runner:Table: sizes: 2 sizes 1..2: [1, 2] -> 1 sizes 1..1: [1]",
        "- label: target:prefill-full",
        "+ label: draft:draft",
    ]


def test_primitives_that_changed_alike_are_one_line_in_brief() -> None:
    def site(number: int, reachable: str, why: str) -> Site:
        where = {"file": "sglang/x.py", "line": number, "qualname": "sglang.x:f", "api": "f", "family": "decode"}
        says = {"role": "replay", "inspectability": "unresolved", "reason": "", "trigger": "startup", "gates": ()}
        return Site(id=f"replay:x.f/{number}", reachable=reachable, why=why, **where, **says)  # type: ignore[arg-type]

    old = whole(path(), sites=tuple(site(number, "yes", "") for number in range(6)))
    why = ["nothing calls it"] * 4 + ["FLAG does not hold"] * 2
    found = difference(old, whole(path(), sites=tuple(site(n, "no", text) for n, text in enumerate(why))))
    assert len(found.lines()) == 6
    assert found.brief() == [
        "~ site: 4 sites: reachable: yes -> no (nothing calls it)",
        "~ site: replay:x.f/4: reachable: yes -> no (FLAG does not hold)",
        "~ site: replay:x.f/5: reachable: yes -> no (FLAG does not hold)",
    ]


def test_maps_that_say_the_same_differ_in_nothing() -> None:
    one = whole(path())
    assert not difference(one, one.model_copy(update={"stats": one.stats.model_copy(update={"seconds": 9.0})}))


def test_a_map_survives_its_json_and_its_digest_leaves_statistics_out() -> None:
    one = whole(path(label=twins()))
    assert PathMap.model_validate_json(one.model_dump_json()) == one
    slower = one.model_copy(update={"stats": one.stats.model_copy(update={"seconds": 9.0})})
    assert slower.content_digest() == one.content_digest()
    assert whole().content_digest() != one.content_digest()


def value(name: str, **changes: Any) -> ConfigValue:
    return ConfigValue(**{"name": name, "value": None, "source": "default", "automatic": False, **changes})


def test_settings_that_come_or_go_at_their_defaults_are_one_line() -> None:
    old = whole(path(), config=(value("a"), value("b", value=1, source="flag"), value("same")))
    new = whole(path(), config=(value("c"), value("d"), value("e", value=2, source="env"), value("same", value=True)))
    assert difference(old, new).lines() == [
        "- config: 1 setting at the default: a",
        "+ config: 2 settings at the default: c, d",
        "~ config: b: 1 -> absent",
        "~ config: e: absent -> 2 (env)",
        "~ config: same: None -> True (default)",
    ]


def test_a_table_of_settings_is_told_by_those_of_its_parts_that_are_settings() -> None:
    def table(backend: str, limit: int) -> tuple[ConfigValue, ...]:
        phase = {"backend": backend, "limit": limit}
        return (value("graphs", value={"decode": phase}), value("graphs.decode.backend", value=backend))

    def lines(old: tuple[ConfigValue, ...], new: tuple[ConfigValue, ...]) -> list[str]:
        return difference(whole(path(), config=old), whole(path(), config=new)).lines()

    part = "~ config: graphs.decode.backend: full -> off (default)"
    assert lines(table("full", 1), table("off", 1)) == [part]
    both = lines(table("full", 1), table("off", 2))
    assert [line.partition(": {")[0] for line in both] == ["~ config: graphs", part]
    assert len(lines(table("full", 1), table("full", 2))) == 1
    empty = value("graphs", value={"decode": {}})
    assert len(lines((empty,), (value("graphs", value={}),))) == 1
