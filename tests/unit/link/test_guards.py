"""Three-valued guards: what a known test prunes, what an unknown one records, and what a value's test narrows."""

from __future__ import annotations

from pathlib import Path

import pytest

from .programs import WORKERS, program


def test_known_tests_prune_and_leave_a_true_guard(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        WORKERS
        + """
        # file: main.py
        from work import no, yes

        LEVEL = 3

        def run():
            if LEVEL > 2 and LEVEL != 7:
                yes()
            else:
                no()
            if not LEVEL:
                no()
        """,
    )
    assert p.edges("main:run") == {("work:yes", "direct")}
    assert p.guards("main:run", "work:yes") == [(("LEVEL > 2 and LEVEL != 7", "true"),)]
    assert p.reached("work:no") == "no"


def test_unknown_tests_join_both_branches(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        WORKERS
        + """
        # file: main.py
        from work import no, third, yes

        def run(flag, other):
            if flag:
                yes()
            elif other:
                third()
            else:
                no()
        """,
    )
    assert p.guards("main:run", "work:yes") == [(("flag", "unknown"),)]
    assert p.guards("main:run", "work:third") == [(("not (flag)", "unknown"), ("other", "unknown"))]
    assert p.guards("main:run", "work:no") == [(("not (flag)", "unknown"), ("not (other)", "unknown"))]


@pytest.mark.parametrize(
    ("body", "called", "guards"),
    [
        ("if flag:\n    return\nyes()", {"yes"}, [(("not (flag)", "unknown"),)]),
        ("if flag:\n    raise ValueError(flag)\nyes()", {"yes"}, [(("not (flag)", "unknown"),)]),
        ("if not flag:\n    no()\nelse:\n    return\nyes()", {"yes", "no"}, [(("not flag", "unknown"),)]),
        ("if True:\n    return\nyes()", set(), []),
        ("if False:\n    return\nyes()", {"yes"}, [()]),
        ("for x in flag:\n    if x:\n        continue\n    yes()", {"yes"}, [(("not (x)", "unknown"),)]),
        ("while True:\n    if flag:\n        break\nyes()", {"yes"}, [()]),
        ("while True:\n    no()\nyes()", {"no"}, []),
        ("while flag:\n    yes()", {"yes"}, [(("flag", "unknown"),)]),
        ("assert flag\nyes()", {"yes"}, [(("flag", "unknown"),)]),
        ("try:\n    return no()\nfinally:\n    yes()", {"yes", "no"}, [()]),
        ("try:\n    no()\nexcept ValueError:\n    return\nyes()", {"yes", "no"}, [()]),
        ("try:\n    pass\nexcept ValueError:\n    pass\nelse:\n    yes()", {"yes"}, [()]),
        ("with flag:\n    yes()", {"yes"}, [()]),
        ("flag and yes()", {"yes"}, [(("flag", "unknown"),)]),
        ("flag or yes()", {"yes"}, [(("not (flag)", "unknown"),)]),
        ("True and yes()", {"yes"}, [(("True", "true"),)]),
        ("True or yes()", set(), []),
        ("False and yes()", set(), []),
        ("no() or yes()", {"yes", "no"}, [(("not (no())", "true"),)]),
        ("yes() if flag else no()", {"yes", "no"}, [(("flag", "unknown"),)]),
        ("yes() if False else no()", {"no"}, []),
        ("[yes() for x in flag if x]", {"yes"}, [(("x", "unknown"),)]),
        ("[yes() for x in []]", set(), []),
        ("for x in ():\n    yes()", set(), []),
        ("for x in ():\n    no()\nelse:\n    yes()", {"yes"}, [()]),
        ("if (found := flag):\n    yes(found)", {"yes"}, [(("(found := flag)", "unknown"),)]),
        ("if 'a' in ('a', 'b'):\n    yes()\nelse:\n    no()", {"yes"}, [(("'a' in ('a', 'b')", "true"),)]),
        ("if 1 < 2 < 3:\n    yes()\nelse:\n    no()", {"yes"}, [(("1 < 2 < 3", "true"),)]),
        ("if 'x'.startswith('y'):\n    no()\nyes()", {"yes"}, [()]),
        ("del flag\nyes()", {"yes"}, [()]),
        ("global G\nG = 1\nif G:\n    yes()", {"yes"}, [(("G", "true"),)]),
    ],
)
def test_control_flow(tmp_path: Path, body: str, called: set[str], guards: list[tuple[tuple[str, str], ...]]) -> None:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    text = "# file: main.py\nfrom work import no, yes\n\n\ndef run(flag):\n" + lines
    work = "# file: work.py\ndef yes(x=None):\n    pass\n\n\ndef no():\n    pass\n"
    p = program(tmp_path, work + text)
    assert p.edges("main:run") == {(f"work:{name}", "direct") for name in called}
    assert p.guards("main:run", "work:yes") == guards


def test_none_is_narrowed_away(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        class Engine:
            def start(self):
                pass

        def find(name):
            return Engine() if name else None

        def run(name):
            engine = find(name)
            if engine is None:
                return
            engine.start()

        def nothing():
            engine = None
            if engine is not None:
                engine.start()

        def either(name):
            engine = find(name)
            if engine:
                engine.start()
            else:
                fallback()

        def fallback():
            pass

        def never(name):
            engine = Engine()
            if engine is None:
                fallback()
            if not engine:
                fallback()
        """,
        entries=("main:run", "main:nothing", "main:either", "main:never"),
    )
    assert p.edges("main:run") == {("main:find", "direct"), ("main:Engine.start", "type")}
    assert p.edges("main:nothing") == set()
    assert p.edges("main:either") == {
        ("main:find", "direct"),
        ("main:Engine.start", "type"),
        ("main:fallback", "direct"),
    }
    assert p.edges("main:never") == set()


def test_functions_that_only_a_survey_sees_are_not_reached(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        WORKERS
        + """
        # file: main.py
        from work import no, yes

        def run():
            if False:
                no()
            yes()

        def unused():
            no()

        class Unused:
            def method(self):
                return self.other()

            def other(self):
                yes()
        """,
        survey=("main",),
    )
    assert p.edges("main:run") == {("work:yes", "direct")}
    assert p.reached("main:unused") == "no"
    assert p.call("main:unused", "no").targets == {"work:no"}
    assert not p.call("main:unused", "no").active
    assert p.call("main:Unused.method", "self.other").targets == {"main:Unused.other"}
    (excluded,) = p.calls("main:run", "no")
    assert not excluded.active
    assert [(guard.text, guard.value.value) for guard in excluded.guards] == [("False", "false")]
    assert p.call("main:run", "yes").active


def test_unknown_values_stay_unknown(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        WORKERS
        + """
        # file: main.py
        import ext
        from work import no, yes

        def run():
            if ext.measure() > 3:
                yes()
            else:
                no()
        """,
    )
    assert p.edges("main:run") == {("work:yes", "direct"), ("work:no", "direct")}


def test_like_conditions_of_two_files_are_two(tmp_path: Path) -> None:
    """The same name is tested in the same line of both, under the same guards: each call is under that of its own file."""
    body = """
        def step(enabled):
            if enabled:
                work.yes()
        """
    p = program(
        tmp_path,
        WORKERS
        + """
        # file: main.py
        import one
        import two

        def run(enabled):
            one.step(enabled)
            two.step(enabled)
        """
        + "".join(f"\n        # file: {name}.py\n        import work\n{body}" for name in ("one", "two")),
    )
    for name in ("one", "two"):
        [edge] = p.linked.graph.get_edge_data(f"{name}:step", "work:yes").values()
        assert [(guard.file, guard.text, guard.value.value) for guard in edge["guards"]] == [
            (f"{name}.py", "enabled", "unknown")
        ]
