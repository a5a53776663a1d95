"""A name that a setter has certainly set before anybody reads it is not what its module's top level gave it."""

from __future__ import annotations

from pathlib import Path

import pytest

from .programs import program, targets

SWITCH = """
        # file: switch.py
        _ENABLED = True

        def set_enabled(enabled: bool):
            global _ENABLED
            _ENABLED = enabled

        def build(flag=None):
            if flag is None:
                flag = _ENABLED
            if flag:
                special()
            else:
                plain()

        def special():
            pass

        def plain():
            pass

        # file: main.py
        import switch
        from switch import build, set_enabled

        def configure():
            set_enabled(False)

"""
OFF, BOTH = {"switch:plain"}, {"switch:plain", "switch:special"}
WAYS: dict[str, tuple[str, set[str]]] = {
    "set before": ("def run(x):\n    set_enabled(False)\n    build()", OFF),
    "set before by another function": ("def run(x):\n    configure()\n    build()", OFF),
    "set through the module": ("def run(x):\n    switch.set_enabled(False)\n    switch.build()", OFF),
    "set before in the same branch": ("def run(x):\n    if x:\n        configure()\n        build()", OFF),
    "a caller sets": ("def run(x):\n    configure()\n    later()\n\ndef later():\n    build()", OFF),
    "what stops a function stops the rest": (
        "def strict(x):\n    if x:\n        raise ValueError\n    assert not x\n    set_enabled(False)\n\ndef run(x):\n    strict(x)\n    build()",
        OFF,
    ),
    "set afterwards": ("def run(x):\n    build()\n    set_enabled(False)", BOTH),
    "set under a condition": ("def run(x):\n    if x:\n        set_enabled(False)\n    build()", BOTH),
    "set in a loop": ("def run(x):\n    for i in x:\n        set_enabled(False)\n    build()", BOTH),
    "set where an exception passes by": (
        "def run(x):\n    try:\n        x()\n        set_enabled(False)\n    except ValueError:\n        pass\n    build()",
        BOTH,
    ),
    "set unless a loop ends the function": (
        "def some(x):\n    for i in x:\n        return\n    set_enabled(False)\n\ndef run(x):\n    some(x)\n    build()",
        BOTH,
    ),
    "set unless the function ends": (
        "def some(x):\n    if x:\n        return\n    set_enabled(False)\n\ndef run(x):\n    some(x)\n    build()",
        BOTH,
    ),
    "one caller of two sets": (
        "def run(x):\n    other()\n    configure()\n    later()\n\ndef other():\n    later()\n\ndef later():\n    build()",
        BOTH,
    ),
    "set by a generator that nobody reads": (
        "def some():\n    set_enabled(False)\n    yield\n\ndef run(x):\n    some()\n    build()",
        BOTH,
    ),
    "set if the right side is asked": ("def run(x):\n    x and set_enabled(False)\n    build()", BOTH),
    "another function sets in a loop": (
        "def some(x):\n    for i in x:\n        set_enabled(False)\n\ndef run(x):\n    some(x)\n    build()",
        BOTH,
    ),
    "set for each of some": ("def run(x):\n    [set_enabled(False) for i in x]\n    build()", BOTH),
    "never set": ("def run(x):\n    build()", {"switch:special"}),
    "read when imported": ("build()\n\ndef run(x):\n    set_enabled(False)\n    build()", BOTH),
    "taken by another module": (
        "from switch import _ENABLED as A\n\ndef run(x):\n    set_enabled(False)\n    later()\n\ndef later():\n    build()\n    build(A)",
        BOTH,
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_a_reader_sees(tmp_path: Path, way: str) -> None:
    code, wanted = WAYS[way]
    indented = "\n".join("        " + line if line else "" for line in code.split("\n"))
    p = program(tmp_path, SWITCH + indented + "\n")
    assert targets(p.edges("switch:build")) == wanted


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    _ENABLED = enabled\n", "    if enabled:\n                return\n            _ENABLED = enabled\n"),
        ("_ENABLED = True\n", "_ENABLED = compute()\n"),
        ("def special", "_COPY = _ENABLED\n\n        def special"),
    ],
)
def test_what_is_no_switch_keeps_its_first_value(tmp_path: Path, old: str, new: str) -> None:
    text = SWITCH.replace(old, new, 1) + "        def run(x):\n            set_enabled(False)\n            build()\n"
    assert targets(program(tmp_path, text).edges("switch:build")) == BOTH


@pytest.mark.parametrize(("given", "expected"), [("False", {"switch:plain"}), ("True", {"switch:special"})])
def test_what_comes_after_a_test_waits_for_it(tmp_path: Path, given: str, expected: set[str]) -> None:
    """A function that may end early is not gone through to its end while what its test asks is kept back."""
    found = program(
        tmp_path,
        f"""
        # file: switch.py
        _REASON = None
        WANTED = {given}

        def forbid(reason):
            global _REASON
            _REASON = reason

        def allowed():
            if _REASON is not None or not WANTED:
                return False
            return True

        def build():
            if not allowed():
                plain()
                return
            special()

        def special():
            pass

        def plain():
            pass

        # file: main.py
        from switch import build

        def run():
            build()
        """,
    )
    assert targets(found.edges("switch:build")) - {"switch:allowed"} == expected
