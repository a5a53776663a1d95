"""The evaluator on small programs: what is known stays known, what is not is joined, and nothing is invented."""

from __future__ import annotations

import pytest
from sgl_graph.analyzer.static.config.facts import LaunchFacts
from sgl_graph.analyzer.static.config.journal import Raised
from sgl_graph.analyzer.static.config.model import configuration
from sgl_graph.analyzer.static.config.possibilities import options_of, single, unknown
from sgl_graph.analyzer.static.config.values import Fuzzy

from tests.unit.config import programs

values = programs.values


def constant(text: str, *arguments: object) -> object:
    found = values(text, "main", *arguments)
    assert found.known, found
    return found.constant


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return list(range(4, 33, 4)) + [48]", (4, 8, 12, 16, 20, 24, 28, 32, 48)),
        ("return sorted({3, 1, 2})", (1, 2, 3)),
        ("return [b for b in [1, 2, 4, 8] if b <= 4]", (1, 2, 4)),
        ("x = [1]\n    x.append(2)\n    x += [3]\n    return x", (1, 2, 3)),
        ("d = {'a': 1}\n    d.update(b=2)\n    return [k for k, v in d.items() if v > 1]", ("b",)),
        ("return 'a-b'.replace('-', '_').upper()", "A_B"),
        ("return (lambda n, m=2: n * m)(4)", 8),
        (
            "total = 0\n    for i in range(5):\n        if i == 3:\n            break\n        total += i\n    return total",
            3,
        ),
        ("i = 0\n    while i < 7:\n        i += 2\n    return i", 8),
        ("try:\n        return int('x')\n    except ValueError:\n        return -1", -1),
        ("import json\n    return json.loads('{\"a\": [1, 2]}')['a']", (1, 2)),
        ("a, *b = [1, 2, 3]\n    return b", (2, 3)),
        ("return f'{1}-{\"x\"}'", "1-x"),
        ("return max([3, 9, 4], key=lambda v: -v)", 3),
        ("return any(v > 2 for v in (1, 2, 3)) and not all([1, 0])", True),
    ],
)
def test_known_programs_give_their_value(body: str, expected: object) -> None:
    assert constant(f"def main():\n    {body}\n") == expected


def test_both_branches_of_an_unknown_test_are_joined() -> None:
    found = values(
        "def main(f):\n    x = 0\n    if f:\n        x = 1\n    else:\n        x = 2\n    return x\n",
        "main",
        unknown(["f"]),
    )
    assert set(found.constants) == {1, 2} and found.complete and found.depends == ("f",)


def test_a_return_in_an_unknown_branch_joins_with_what_follows() -> None:
    text = "def main(f):\n    if f:\n        return 'early'\n    return 'late'\n"
    found = values(text, "main", unknown(["f"]))
    assert set(found.constants) == {"early", "late"} and found.complete


def test_a_raise_in_an_unknown_branch_is_no_outcome_of_a_launch() -> None:
    assert constant("def main(f):\n    if f:\n        raise ValueError('no')\n    return 5\n", unknown(["f"])) == 5


def test_a_raise_that_every_branch_makes_is_raised() -> None:
    machine = programs.evaluator("def main(f):\n    if f:\n        raise ValueError('a')\n    raise ValueError('b')\n")
    with pytest.raises(Raised) as caught:
        programs.run(machine, "main", unknown(["f"]))
    assert caught.value.explicit and caught.value.place.file == "program.py" and caught.value.place.line in (3, 4)


def test_a_caught_raise_in_an_unknown_branch_reaches_its_handler() -> None:
    text = (
        "def main(f):\n    try:\n        if f:\n            raise KeyError('k')\n        x = 1\n"
        "    except KeyError:\n        x = 2\n    return x\n"
    )
    assert set(values(text, "main", unknown(["f"])).constants) == {1, 2}


def test_a_log_that_may_be_longer_answers_with_the_entries_that_are_certain() -> None:
    text = """
    def last(log, key, default):
        for source, declared in reversed(log):
            if key in declared:
                return declared[key]
        return default

    def main(f):
        log = [("a", {"x": 1})]
        if f:
            log.append(("b", {"x": 2, "y": 3}))
        log.append(("c", {"z": 4}))
        return {"x": last(log, "x", 0), "y": last(log, "y", 0), "z": last(log, "z", 0), "n": bool(log)}
    """
    result = programs.run(programs.evaluator(text), "main", unknown(["f"])).items
    assert set(result["x"].options) == {1, 2} and not result["x"].open
    assert set(result["y"].options) == {0, 3}
    assert result["z"] == 4 and result["n"] is True


def test_objects_made_in_a_branch_keep_their_attributes() -> None:
    text = """
    import dataclasses

    @dataclasses.dataclass
    class Phase:
        backend: str = "full"
        sizes: list = dataclasses.field(default_factory=list)

    def main(f):
        phase = Phase()
        if f:
            phase = dataclasses.replace(phase, backend="off")
            phase.sizes = [1]
        return phase.backend, phase.sizes == [1] or phase.sizes == []
    """
    backend, _ = programs.run(programs.evaluator(text), "main", unknown(["f"]))
    assert set(backend.options) == {"full", "off"} and not backend.open


def test_kleene_logic_needs_no_value_to_know_the_answer() -> None:
    text = "def main(u):\n    return (True if (u and False) else False, True if (u or True) else False)\n"
    assert constant(text, unknown(["u"])) == (False, True)


def test_enumerations_records_and_properties() -> None:
    text = """
    from enum import Enum, IntEnum, auto

    class Kind(IntEnum):
        MLA = auto()
        MHA = auto()

    class Name(str, Enum):
        A = "a"

    class Base:
        def __init__(self, n):
            self.n = n
        @property
        def double(self):
            return self.n * 2
        def __getattr__(self, name):
            if name == "ghost":
                return 7
            raise AttributeError(name)

    class Child(Base):
        def __init__(self):
            super().__init__(4)

    def main():
        c = Child()
        return Kind.MHA == 2, Name.A == "a", Name("a") is Name.A, c.double, c.ghost, hasattr(c, "none"), isinstance(c, Base)
    """
    assert constant(text) == (True, True, True, 8, 7, False, True)


def test_what_a_call_outside_the_checkout_gives_is_unknown_and_says_so() -> None:
    found = values("import elsewhere\n\ndef main():\n    return elsewhere.probe(1)\n")
    assert not found.complete and found.constants == () and found.depends == ("package:elsewhere",)


def test_the_environment_answers_where_it_is_asked() -> None:
    text = "import os\n\ndef main():\n    return os.getenv('A', 'unset'), os.environ.get('B', 'unset'), 'A' in os.environ\n"
    found = values(text, facts=LaunchFacts(environment={"A": "1"}))
    assert found.constant == ("1", "unset", True) and "env:A" in found.depends


def test_a_loop_without_end_is_given_up_not_followed() -> None:
    found = values("def main():\n    x = 1\n    while True:\n        x += 1\n    return x\n")
    assert not found.known


def test_recursion_under_an_unknown_test_ends() -> None:
    text = "def main(u):\n    if u:\n        return main(u) + 1\n    return 0\n"
    found = programs.run(programs.evaluator(text), "main", unknown(["u"]))
    assert isinstance(found, Fuzzy) and 0 in found.options


def test_lists_computed_by_a_function_say_which() -> None:
    machine = programs.evaluator("def sizes(n):\n    return list(range(1, n))\n\ndef main():\n    return sizes(4)\n")
    result = programs.run(machine, "main")
    assert machine.made[id(result)].qualname == "program:sizes" and machine.made[id(result)].line == 1


def test_the_text_part_of_a_model_is_its_own_configuration() -> None:
    plain = configuration({"model_type": "llama", "hidden_size": 8})
    tower = configuration({"model_type": "vl", "text_config": {"model_type": "qwen"}, "vision_config": {"depth": 2}})
    text = "def main(config):\n    return config.get_text_config().model_type\n"
    assert values(text, "main", plain).constants == ("llama",)
    assert values(text, "main", tower).constants == ("qwen",)


def test_a_nested_part_that_describes_no_model_stays_a_dictionary() -> None:
    found = configuration(
        {"linear_attn_config": {"kda_layers": [1]}, "vision_config": {"depth": 2}, "audio_config": {}}
    )
    text = "def main(c):\n    return isinstance(c.linear_attn_config, dict), isinstance(c.vision_config, dict)\n"
    assert values(text, "main", found).constant == (True, False)
    text = "def main(c):\n    return isinstance(c.audio_config, dict), c.linear_attn_config['kda_layers'][0]\n"
    assert values(text, "main", found).constant == (False, 1)


def test_a_model_is_of_the_class_that_names_its_type() -> None:
    text = """
from transformers import PretrainedConfig

class HybridConfig(PretrainedConfig):
    model_type = "hybrid"

class OtherConfig(PretrainedConfig):
    model_type = "other"

class Untyped(PretrainedConfig):
    pass

def main(c):
    return isinstance(c, HybridConfig), isinstance(c, OtherConfig | Untyped), isinstance(c, (OtherConfig, HybridConfig))
"""
    assert values(text, "main", configuration({"model_type": "hybrid"})).constant == (True, False, True)
    assert values(text, "main", configuration({"model_type": "third"})).constant == (False, False, False)
    assert values(text, "main", configuration({})).constant == (False, False, False)


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("x is not None", {1, 2, "none"}),
        ("x", {1, 2, "none"}),
        ("not (x is None)", {1, 2, "none"}),
        ("x is not None and x != 2", {1, "none"}),
        ("x in (1, 2)", {1, 2, "none"}),
    ],
)
def test_a_test_narrows_the_local_name_that_it_asks(test: str, expected: set[object]) -> None:
    found = values(
        f"def main(x):\n    if {test}:\n        return x\n    return 'none'\n",
        "main",
        Fuzzy((None, 1, 2), False, frozenset(["f"])),
    )
    assert found.complete and set(found.constants) == expected


def test_a_test_of_something_unknown_narrows_nothing_away() -> None:
    found = values("def main(x):\n    if x:\n        return x\n    return x\n", "main", unknown(["f"]))
    assert not found.complete


LOG = """
    def read(log, name):
        for source, declared in reversed(log):
            if name in declared:
                return declared[name]
        return "raw"

    def declare(log, flags):
        if flags[0]:
            log.append(("a", {"a": 1}))
            if flags[1]:
                log.append(("b", {"b": 2}))
                return
            if flags[2]:
                log.append(("c", {"a": 3}))
                if flags[3]:
                    log.append(("d", {"a": 4}))
                    return
        if flags[4]:
            log.append(("e", {"a": 5}))
            return
        if flags[5]:
            log.append(("f", {"a": 6}))
"""


def test_a_log_with_too_many_endings_still_tells_what_it_can_hold() -> None:
    text = LOG + (
        "\n    def main(flags):\n        log = [('first', {'z': 0})]\n        declare(log, flags)\n"
        "        log.append(('last', {'y': 9}))\n        return read(log, 'a'), read(log, 'b'), read(log, 'y'), read(log, 'z'), read(log, 'q')\n"
    )
    machine = programs.evaluator(text)
    result = programs.run(machine, "main", unknown(["f"]))
    options = [set(options_of(item)[0]) for item in result]
    assert options[0] >= {"raw", 1, 3, 4, 5, 6} and options[1] == {"raw", 2}
    assert [single(item) for item in result[2:]] == [9, 0, "raw"]


def test_an_unknown_key_gives_any_of_the_values() -> None:
    rows = ", ".join(f"'m{n}': [make({n})]" for n in range(20))
    text = f"""
    def make(n):
        def provider():
            return {{"size": n % 3}}
        return provider

    TABLE = {{{rows}}}
    PLAIN = {{{", ".join(f"'m{n}': {{'k': {n % 2}}}" for n in range(20))}}}

    def main(key):
        found = {{}}
        for provider in TABLE.get(key, ()):
            found.update(provider())
        return found.get("size", "none"), PLAIN.get(key, {{}}).get("k", "none"), found.get("other", "none")
    """
    result = programs.run(programs.evaluator(text), "main", unknown(["key"]))
    assert set(options_of(result[0])[0]) == {0, 1, 2, "none"} and not result[0].open
    assert set(options_of(result[1])[0]) == {0, 1, "none"} and not result[1].open
    assert single(result[2]) == "none"
