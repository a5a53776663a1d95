"""A table that a scan over a package fills knows the classes that the package gives, and which it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from .programs import program, targets
from .test_constructs_scan import SCAN

FALLBACK = """
        # file: registry_use.py
        from registry import registry

        class Fallback:
            def forward(self):
                pass

        def by_any(names):
            if not any(name in registry.models.keys() for name in names):
                return Fallback
            return registry.resolve(names[0])

        def by_filter(names):
            kept = list(filter(lambda name: name in registry.models, names))
            if len(kept) != len(names):
                kept.append("Other")
                return Fallback
            return registry.resolve(kept[0])

        # file: main.py
        from registry_use import by_any, by_filter

        def given():
            by_any(["QwenVision"])().forward()

        def given_twice():
            by_filter(["QwenVision", "Qwen"])().forward()

        def not_given():
            by_any(["Plain"])().forward()

        def partly_given():
            by_filter(["Qwen", "Plain"])().forward()
"""
HIDDEN = """
        # file: models/plain.py
        class Plain:
            def forward(self):
                pass

        EntryClass = []
"""
FORWARD = {"registry_use:Fallback.forward"}


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        ("given", {"models.qwen:QwenVision.forward"}),
        ("given_twice", {"models.qwen:QwenVision.forward", "models.qwen:Qwen.forward"}),
    ],
)
def test_a_class_that_the_scan_gives_needs_no_fallback(tmp_path: Path, entry: str, wanted: set[str]) -> None:
    p = program(tmp_path, SCAN + FALLBACK + HIDDEN, (f"main:{entry}",))
    assert {t for t in targets(p.edges(f"main:{entry}")) if t.endswith("forward")} == wanted
    assert p.reached("registry_use:Fallback.forward") == "no"


@pytest.mark.parametrize("entry", ["not_given", "partly_given"])
def test_a_class_that_no_module_gives_leaves_the_fallback_open(tmp_path: Path, entry: str) -> None:
    p = program(tmp_path, SCAN + FALLBACK + HIDDEN, (f"main:{entry}",))
    assert targets(p.edges(f"main:{entry}")) >= FORWARD


@pytest.mark.parametrize(
    "change",
    ["items.pop()", "items.remove(2)", "items.clear()", "del items[0]", "items += [3]", "items.append(3)"],
)
def test_a_list_that_changes_has_no_length(tmp_path: Path, change: str) -> None:
    p = program(
        tmp_path,
        f"""
        # file: main.py
        def same():
            pass

        def other():
            pass

        def run():
            items = list([1, 2])
            {change}
            if len(items) == 2:
                same()
            else:
                other()
        """,
    )
    assert {"main:same", "main:other"} <= targets(p.edges("main:run"))
