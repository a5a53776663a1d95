"""Answers of a resolved configuration, and when the source has the last word."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest
from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.config import protocol as p
from sgl_graph.analyzer.static.link.configured import ConfigurationOracle
from sgl_graph.analyzer.static.linked import Truth

from .programs import program

PROGRAM = """
        # file: settings.py
        class Settings:
            def __init__(self, backend):
                self.backend = backend

        def is_off():
            return current().backend == "off"

        def current():
            return Settings("off")

        # file: main.py
        from settings import current, is_off

        def capture():
            pass

        def run():
            if is_off():
                return
            capture()

        def switch():
            settings = current()
            settings.backend = "full"
            run()
"""


class _Resolved:
    """Settings of which the resolution knows that capture is off."""

    def call(self, qualname: str, arguments: Sequence[p.Constant] = ()) -> p.Values | None:
        known = {"settings:is_off": True, "settings:current": p.InstanceOf("settings:Settings", "1")}
        if qualname == "settings:is_plain" and arguments == [p.InstanceOf("settings:Settings", "1")]:
            return p.Values((True,), complete=True)
        return p.Values((known[qualname],), complete=True) if qualname in known else None

    def only(self, class_qualname: str) -> p.InstanceOf | None:
        return p.InstanceOf(class_qualname, "1")

    def attribute(self, instance: p.InstanceOf, name: str) -> p.Values | None:
        return p.Values(("off",), complete=True) if name == "backend" else None

    def field(self, owner: str, name: str) -> p.Values | None:
        return None

    def module_attribute(self, module: str, name: str) -> p.Values | None:
        return None


@pytest.mark.parametrize(("entry", "captures"), [("main:run", "no"), ("main:switch", "true")])
def test_a_predicate_is_interpreted_where_code_that_runs_rewrites_what_it_reads(
    tmp_path: Path, entry: str, captures: str
) -> None:
    oracle = ConfigurationOracle(
        cast("p.Configuration", _Resolved()),
        asks=lambda name: name in ("settings:is_off", "settings:current"),
        classes=frozenset({"settings:Settings"}),
        reads=lambda name: "backend" if name == "settings:is_off" else None,
    )
    found = program(tmp_path, PROGRAM, (entry,), oracle=oracle)
    assert found.reached("main:capture") == captures


def test_an_object_of_the_configuration_is_not_none(tmp_path: Path) -> None:
    text = """
        # file: settings.py
        class Settings:
            pass

        def current():
            return None

        # file: main.py
        from settings import current

        def given():
            pass

        def missing():
            pass

        def run():
            settings = current()
            (given if settings is not None else missing)()
            if not settings:
                missing()
    """
    oracle = ConfigurationOracle(
        cast("p.Configuration", _Resolved()),
        asks=lambda name: name == "settings:current",
        classes=frozenset({"settings:Settings"}),
    )
    found = program(tmp_path, text, oracle=oracle)
    assert found.reached("main:given") == "true" and found.reached("main:missing") == "no"


def test_the_only_object_of_a_configuration_class_is_an_argument_that_the_resolution_knows(tmp_path: Path) -> None:
    text = """
        # file: settings.py
        class Settings:
            pass

        def is_plain(settings):
            return settings.kind == "plain"

        # file: main.py
        from settings import Settings, is_plain

        def hybrid():
            pass

        def run():
            if not is_plain(Settings()):
                hybrid()
    """
    oracle = ConfigurationOracle(
        cast("p.Configuration", _Resolved()),
        asks=lambda name: name == "settings:is_plain",
        classes=frozenset({"settings:Settings"}),
    )
    assert program(tmp_path, text, oracle=oracle).reached("main:hybrid") == "no"


def test_what_the_machine_answers_anew_each_time_is_no_configuration(tmp_path: Path) -> None:
    text = """
        # file: settings.py
        import time

        class Settings:
            pass

        def now():
            return time.time()

        # file: main.py
        from settings import now

        def late():
            pass

        def run():
            if now() > 5:
                late()
    """

    class _Clock(_Resolved):
        def call(self, qualname: str, arguments: Sequence[p.Constant] = ()) -> p.Values | None:
            return p.Values((), depends=("host",))

    oracle = ConfigurationOracle(
        cast("p.Configuration", _Clock()),
        asks=lambda name: name == "settings:now",
        classes=frozenset({"settings:Settings"}),
    )
    (call,) = [c for c in program(tmp_path, text, oracle=oracle).linked.calls["main:run"] if c.text == "late"]
    assert [(guard.value, guard.depends) for guard in call.guards] == [(Truth.UNKNOWN, ())]


def test_methods_of_the_only_configuration_object_are_answered_wherever_it_was_made(tmp_path: Path) -> None:
    text = """
        # file: settings.py
        class Settings:
            def is_plain(self):
                return self.read_from_somewhere() == "plain"

        # file: main.py
        from settings import Settings

        def hybrid():
            pass

        def run(settings: Settings):
            if not settings.is_plain():
                hybrid()
    """

    class _Plain(_Resolved):
        def field(self, owner: str, name: str) -> p.Values | None:
            return (
                p.Values((p.FunctionOf("settings:Settings.is_plain"),), complete=True) if name == "is_plain" else None
            )

        def call(self, qualname: str, arguments: Sequence[p.Constant] = ()) -> p.Values | None:
            assert arguments == [p.InstanceOf("settings:Settings", "1")]
            return p.Values((True,), complete=True)

    oracle = ConfigurationOracle(
        cast("p.Configuration", _Plain()),
        asks=lambda name: name == "settings:Settings.is_plain",
        classes=frozenset({"settings:Settings"}),
    )
    assert program(tmp_path, text, oracle=oracle).reached("main:hybrid") == "no"


GROUPS = """
        # file: groups.py
        class Group:
            def __init__(self, ranks):
                self.size = len(ranks)

            def reduce(self, x):
                if self.size == 1:
                    return x
                return self.exchange(x)

            def exchange(self, x):
                return x

        # file: main.py
        import elsewhere
        from groups import Group

        def run():
            Group(elsewhere.ranks()).reduce(1)
"""


class _Ranks(_Resolved):
    """A launch of so many ranks; it has no second size of them."""

    def __init__(self, ranks: p.Values) -> None:
        self.ranks = ranks

    def field(self, owner: str, name: str) -> p.Values | None:
        return self.ranks if (owner, name) == ("settings:Settings", "ranks") else None


@pytest.mark.parametrize(
    ("ranks", "exchanges"),
    [
        (p.Values((1,), complete=True), "no"),
        (p.Values((2,), complete=True), "true"),
        (p.Values((1,), complete=False, depends=("ranks",)), "true"),
    ],
)
def test_a_group_of_a_launch_of_one_rank_exchanges_nothing(tmp_path: Path, ranks: p.Values, exchanges: str) -> None:
    oracle = ConfigurationOracle(
        cast("p.Configuration", _Ranks(ranks)),
        asks=lambda name: False,
        classes=frozenset({"settings:Settings"}),
        groups={"groups:Group": "size"},
        ranks=("settings:Settings", ("ranks", "stages")),
    )
    found = program(tmp_path, GROUPS, ("main:run",), oracle=oracle)
    assert found.reached("groups:Group.exchange") == exchanges


@pytest.mark.parametrize("module", ["overrides", "model_override_base"])
def test_a_view_over_the_arguments_has_theirs_wherever_a_release_keeps_it(tmp_path: Path, module: str) -> None:
    text = f"""
        # file: sglang/srt/arg_groups/{module}.py
        class ResolvedView:
            def __init__(self, arguments):
                self._arguments = arguments

            def __getattr__(self, name):
                return getattr(self._arguments, name)

        # file: main.py
        from sglang.srt.arg_groups.{module} import ResolvedView

        def chosen():
            pass

        def other():
            pass

        def backend_of(settings):
            return settings.backend

        def run(arguments):
            if backend_of(ResolvedView(arguments)) == "off":
                chosen()
            else:
                other()
    """

    class _Fields(_Resolved):
        def field(self, class_qualname: str, name: str) -> p.Values | None:
            return p.Values(("off",), complete=True) if (class_qualname, name) == ("settings:S", "backend") else None

    oracle = ConfigurationOracle(
        cast("p.Configuration", _Fields()),
        asks=lambda name: False,
        classes=frozenset({"settings:S"}),
        views=dict.fromkeys(profile.CONFIGURATION_VIEWS, "settings:S"),
    )
    found = program(tmp_path, text, oracle=oracle)
    assert (found.reached("main:chosen"), found.reached("main:other")) == ("true", "no")


@pytest.mark.parametrize("change", ['names[0] = "other"', 'names += ["other"]', 'names.append("other")'])
def test_items_of_the_configuration_may_be_changed_in_place(tmp_path: Path, change: str) -> None:
    text = f"""
        # file: settings.py
        def names_of():
            return ["first"]

        # file: main.py
        from settings import names_of

        def first():
            pass

        def other():
            pass

        TABLE = {{"first": first, "other": other}}

        def run():
            names = names_of()
            {change}
            for name in names:
                TABLE[name]()
    """

    class _Names(_Resolved):
        def call(self, qualname: str, arguments: Sequence[p.Constant] = ()) -> p.Values | None:
            return p.Values((("first",),), complete=True) if qualname == "settings:names_of" else None

    oracle = ConfigurationOracle(
        cast("p.Configuration", _Names()), asks=lambda name: name == "settings:names_of", classes=frozenset()
    )
    found = program(tmp_path, text, oracle=oracle)
    assert found.reached("main:first") == "true" and found.reached("main:other") == "true"
