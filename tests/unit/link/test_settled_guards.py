"""Guards that the configuration and the environment settle, and those that only serving tells."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sgl_graph.analyzer.static.link.oracle import NoOracle
from sgl_graph.analyzer.static.link.values import Constant, Unknown, Values

from .programs import WORKERS, program


def test_environment_variables_that_nobody_set_are_unknown(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        WORKERS
        + """
        # file: main.py
        import os
        from work import no, yes

        def run():
            if os.environ.get("USE_IT", "0") == "1":
                yes()
            else:
                no()
        """,
    )
    assert p.guards("main:run", "work:yes") == [(("os.environ.get('USE_IT', '0') == '1'", "unknown"),)]
    assert p.guards("main:run", "work:no") == [(("not (os.environ.get('USE_IT', '0') == '1')", "unknown"),)]


class _Answers(NoOracle):
    """A configuration with one field of each kind."""

    def field(self, interpreter: object, owner: str, name: str) -> Values | None:
        if owner != "settings:Settings":
            return None
        known: dict[str, Values] = {
            "on": frozenset((Constant.of(True),)),
            "off": frozenset((Constant.of(False),)),
            "backend": frozenset((Constant.of("full"),)),
            "automatic": frozenset((Unknown.of(("automatic",)),)),
        }
        return known.get(name)

    def environment(self, interpreter: object, name: str) -> Values | None:
        return frozenset((Constant.of("1"),)) if name == "USE_IT" else None

    def call(self, interpreter: object, function: str, arguments: Sequence[Values]) -> Values | None:
        return frozenset((Constant.of(False),)) if function == "platforms:is_npu" else None


def test_the_configuration_settles_guards(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        WORKERS
        + """
        # file: settings.py
        class Settings:
            on: bool
            off: bool
            backend: str
            automatic: str

        # file: platforms.py
        import probing

        def is_npu():
            return probing.find()

        # file: main.py
        import os
        from platforms import is_npu
        from settings import Settings
        from work import no, third, yes

        def run(settings: Settings):
            if settings.on and not settings.off:
                yes()
            else:
                no()
            if is_npu():
                no()
            if os.environ["USE_IT"] == "1":
                yes()
            if settings.backend == "full" and settings.automatic == "triton":
                third()
        """,
        oracle=_Answers(),
    )
    assert p.edges("main:run") == {
        ("platforms:is_npu", "direct"),
        ("work:yes", "direct"),
        ("work:third", "direct"),
    }
    (edge,) = p.linked.graph.get_edge_data("main:run", "work:third").values()
    (guard,) = edge["guards"]
    assert (guard.text, guard.value.value, guard.depends) == (
        "settings.backend == 'full' and settings.automatic == 'triton'",
        "unknown",
        ("automatic",),
    )
    assert p.reached("work:yes") == "true"
    assert p.reached("work:third") == "unknown"


def test_a_comparison_with_what_only_serving_tells_rests_on_no_configuration(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        WORKERS
        + """
        # file: settings.py
        class Settings:
            pass

        # file: main.py
        from settings import Settings
        from work import no, yes

        def run(request):
            limit = Settings().automatic
            if request.size <= limit:
                yes()
            if request.name in (limit, "all"):
                yes()
            if limit > 4:
                no()
        """,
        oracle=_Answers(),
    )
    assert p.reached("work:yes") == "true" and p.reached("work:no") == "unknown"
