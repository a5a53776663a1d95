"""After an edit a stored map is carried over, or made anew, and either way it is the map that a cold run makes."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from sgl_graph.analyzer.records.pathmap import Stats
from sgl_graph.analyzer.serving_command import parse
from sgl_graph.runtime import mapping
from sgl_graph.runtime.mapping import MapOptions

MINISERVE = Path(__file__).parents[3] / "fixtures" / "miniserve"
SERVING = [
    *("python", "-m", "sglang.launch_server", "--model-path", "models/tiny-moe"),
    *("--lora-paths", "a=adapters/a", "b=adapters/b"),
    *("--max-running-requests", "4", "--cuda-graph-bs-prefill", "8", "16", "32"),
]
SRT = "python/sglang/srt"
EMULATED = {"SGL_GRAPH_INSPECTOR": "emugraph.inspector"}


class Made(NamedTuple):
    """A map without what its making took, and whether the checkout was linked for it."""

    text: str
    linked: bool


def path_map(base: Path) -> Made:
    steps: list[str] = []
    options = MapOptions(command=parse(SERVING), checkout=base, env=EMULATED, jobs=1)
    made = mapping.make_map(options, steps.append)
    counts = Stats(functions_reached=made.stats.functions_reached, functions_total=made.stats.functions_total)
    return Made(made.model_copy(update={"stats": counts}).model_dump_json(), any("linking" in s for s in steps))


@pytest.fixture(scope="module")
def mapped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout, and a cache that holds its map."""
    place = tmp_path_factory.mktemp("edited")
    shutil.copytree(MINISERVE, place / "checkout", ignore=shutil.ignore_patterns("__pycache__"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(place / "cache"))
        patch.chdir(place / "checkout")
        assert path_map(Path(".")).linked
        assert not path_map(Path(".")).linked
    return place


@pytest.fixture
def work(mapped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of both, at the place that the map is of."""
    shutil.copytree(mapped / "cache", tmp_path / "cache")
    shutil.copytree(mapped / "checkout", tmp_path / "kept")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(mapped / "checkout")
    yield mapped / "checkout" / SRT
    shutil.rmtree(mapped / "checkout")
    shutil.copytree(tmp_path / "kept", mapped / "checkout")


def before(mark: str, text: str) -> Callable[[str], str]:
    def edit(source: str) -> str:
        assert source.count(mark) >= 1, mark
        return source.replace(mark, text + mark, 1)

    return edit


def end(text: str) -> Callable[[str], str]:
    return lambda source: source + text


RUNNER, MANAGER, POOL = "model_executor/runner/decode_cuda_graph_runner.py", "lora/lora_manager.py", "lora/mem_pool.py"
ARGS, REGISTRY, COMMON = "server_args.py", "layers/attention/attention_registry.py", "utils/common.py"
#: File, edit, and whether the stored map is carried over: True and False are promises, None leaves it open.
EDITS: dict[str, tuple[str, Callable[[str], str], bool | None]] = {
    "comment-above-all": (RUNNER, lambda source: "# one\n# two\n" + source, True),
    "blank-lines": (RUNNER, before("class DecodeCudaGraphRunner", "\n\n\n"), True),
    "comment-in-a-body": (RUNNER, before("        self.num_replays = 0", "        # counted\n"), True),
    "docstring": (RUNNER, lambda source: source.replace('"""One captured', '"""One\n\n    captured', 1), True),
    "new-docstring": (RUNNER, before("        if fault_planted(", '        """Made once."""\n'), True),
    "long-call-broken-up": (
        RUNNER,
        lambda source: source.replace("_lora_backend_skips_inactive(model_runner)", "_lora_backend_skips_inactive(\n            model_runner\n        )", 1),
        True,
    ),
    "two-lines-become-one": (
        RUNNER,
        lambda source: source.replace("self.num_replays = 0\n        ", "self.num_replays = 0; ", 1),
        False,
    ),
    "body-reached": (RUNNER, before("        self.num_replays = 0", "        self.extra = None\n"), False),
    "body-unreached": (COMMON, before("    victims = _descendants", "    print('ending', parent_pid)\n"), True),
    "function-in-a-body-unreached": (
        COMMON,
        before("    victims = _descendants", "    def ending():\n        pass\n\n"),
        True,
    ),
    "said-in-a-body-reached": (RUNNER, before("        self.num_replays = 0", "        print(f'made for {model_runner}')\n"), True),
    "more-than-said": (RUNNER, before("        self.num_replays = 0", "        print(f'{model_runner.extra}')\n"), False),
    "other-name-declared": (COMMON, before("    victims = _descendants", "    global signal\n"), None),
    "graph-in-a-body-unreached": (
        COMMON,
        before("    victims = _descendants", "    graph = emugraph.cuda.CUDAGraph()\n    graph.replay()\n"),
        False,
    ),
    "graph-in-a-comment": (COMMON, before("    victims = _descendants", "    # like a CUDAGraph\n"), False),
    "import": (MANAGER, before("import emugraph", "import bisect\n"), None),
    "import-of-the-checkout": (MANAGER, before("from sglang.srt.lora.lora ", "import sglang.srt.layers.moe.fused_moe\n"), None),
    "name-shadowed": (POOL, end("\n\nLoRAMemoryPool = None\n"), False),
    "name-of-an-import-shadowed": (MANAGER, end("\n\nLoRAMemoryPool = dict\n"), False),
    "new-name": (POOL, end("\n\nLIMIT = 3\n"), None),
    "new-function": (POOL, end("\n\ndef unused(pool):\n    return pool.init_buffers()\n"), None),
    "new-function-where-none-was-gone-through": (
        COMMON,
        end("\n\ndef unused(pool, size=3):\n    return launch_server(pool, size)\n"),
        True,
    ),
    "parameters-of-a-function-unreached": (
        COMMON,
        lambda source: source.replace("include_parent: bool = True", "include_parent=True, *more", 1),
        True,
    ),
    "new-function-where-all-were-gone-through": (RUNNER, end("\n\ndef unused(runner):\n    return runner\n"), False),
    "new-constant": (COMMON, end("\n\nLIMIT = 3\n"), True),
    "new-import": (COMMON, before("import signal", "from bisect import insort\n"), True),
    "decorated-function": (COMMON, end("\n\n@lru_cache\ndef unused():\n    pass\n"), False),
    "function-that-was-called-replaced": (COMMON, end("\n\nkill_process_tree = None\n"), None),
    "method-overridden": (
        "lora/backend/base_backend.py",
        end("\n\n@register_lora_backend('third')\nclass Third(LoRABackend):\n    def prepare(self):\n        pass\n"),
        False,
    ),
    "registration": (
        REGISTRY,
        end("\n\n@register_attention_backend('third')\ndef create_third(runner):\n    return None\n"),
        False,
    ),
    "default-of-a-parameter": (REGISTRY, lambda source: source.replace("(name: str)", "(name: str = 'paged')"), False),
    "default-of-an-argument": (ARGS, lambda source: source.replace("context_length: int", "context_length: int | None", 1), False),
    "broken": (POOL, end("\n\ndef half(:\n"), False),
    "emptied": (POOL, lambda source: "", False),
}  # fmt: skip


@pytest.mark.parametrize("name", EDITS)
def test_a_map_after_an_edit_is_the_map_of_a_cold_run(work: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    file, edit, carried = EDITS[name]
    source = (work / file).read_text()
    (work / file).write_text(edit(source))
    assert (work / file).read_text() != source
    made = path_map(Path("."))
    if carried is not None:
        assert made.linked is not carried
    with monkeypatch.context() as patch:
        patch.setattr(mapping, "load", lambda *_: None)
        cold = path_map(Path("."))
    assert cold.linked
    assert made.text == cold.text
    # The next edit starts from what this one left.
    (work / file).write_text("# further\n" + (work / file).read_text())
    further = path_map(Path("."))
    assert not further.linked or name == "broken"  # its fault stands in another line
    moved = [int(line) for line in re.findall(rf'"{re.escape(f"sglang/srt/{file}")}","line":(\d+)', further.text)]
    shown = [int(line) for line in re.findall(rf'"{re.escape(f"sglang/srt/{file}")}","line":(\d+)', made.text)]
    assert moved == [line + 1 for line in shown]


def test_edits_of_one_file_add_up(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small edits, one after another, each mapped: the last map is still that of a cold run."""
    for name, (file, edit, carried) in EDITS.items():
        if carried:
            (work / file).write_text(edit((work / file).read_text()))
            assert not path_map(Path(".")).linked, name
    made = path_map(Path("."))
    monkeypatch.setattr(mapping, "load", lambda *_: None)
    assert made.text == path_map(Path(".")).text
