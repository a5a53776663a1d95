"""Code that could not be read excludes nothing: what it may lead to is unresolved, and the gap is material."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sgl_graph.analyzer.records.pathmap import PathMap

from tests.functional.preflight.conftest import COMMAND, Outcome

SRT = "python/sglang/srt"
SCHEDULER, RUNNER = f"{SRT}/managers/scheduler.py", f"{SRT}/model_executor/runner/decode_cuda_graph_runner.py"
Program = Callable[..., Outcome]


def mapped(program: Program, checkout: Path, *command: str) -> PathMap:
    options = ("--checkout", str(checkout), "--device", "cuda:sm90", "--jobs", "1", "--no-cache", "--format", "json")
    return PathMap.model_validate_json(program("preflight", *options, "--", *COMMAND, *command).out)


def material(made: PathMap, code: str) -> list[str]:
    return [gap.text for gap in made.gaps if gap.severity == "material" and gap.code == code]


def spoil(file: Path) -> None:
    file.write_text(file.read_text() + "\ndef (\n")


def lose(file: Path) -> None:
    file.unlink()


def rename(file: Path) -> None:
    file.write_text(file.read_text().replace("run_scheduler_process", "run_the_scheduler"))


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (spoil, "could not be read"),
        (lose, "is not in this checkout"),
        (rename, "has no function run_scheduler_process"),
    ],
)
def test_without_the_workers_first_function_nothing_is_excluded(
    program: Program, checkout: Path, harm: Callable[[Path], None], words: str
) -> None:
    harm(checkout / SCHEDULER)
    made = mapped(program, checkout)
    assert {site.reachable for site in made.sites} == {"unresolved"}
    assert all(words in site.why for site in made.sites)
    assert {path.reachable for path in made.paths} == {"unresolved"}
    assert "target:decode" in {path.name for path in made.paths}
    assert not made.labels
    (gap,) = material(made, "SGG065")
    assert words in gap


def test_a_runner_that_could_not_be_read_leaves_its_table_open(program: Program, checkout: Path) -> None:
    whole = {site.id: site for site in mapped(program, checkout).sites}
    spoil(checkout / RUNNER)
    made = mapped(program, checkout)
    assert not [s.id for s in made.sites if s.reachable == "no" and whole[s.id].reachable == "yes"]
    tables = [
        s for s in made.sites if s.file.endswith("full_cuda_graph_backend.py") and s.role in ("capture", "replay")
    ]
    assert {site.reachable for site in tables} == {"unresolved"}
    assert all("decode_cuda_graph_runner.py could not be read" in site.why for site in tables)
    (gap,) = material(made, "SGG061")
    assert "decode_cuda_graph_runner.py" in gap
    assert "target:prefill-breakable" in made.labels


def test_an_unreadable_file_that_nothing_imports_excludes_as_before(program: Program, checkout: Path) -> None:
    whole = mapped(program, checkout)
    (checkout / SRT / "aside.py").write_text("def (\n")
    (checkout / SRT / "graphs_aside.py").write_text("import torch\ngraph = torch.cuda.CUDAGraph(\n")
    made = mapped(program, checkout)
    assert made.sites == whole.sites and made.paths == whole.paths
    (gap,) = material(made, "SGG061")
    assert "graphs_aside.py" in gap


def test_a_phase_whose_backend_the_model_decides_is_open_without_the_model(program: Program, checkout: Path) -> None:
    arguments = checkout / SRT / "server_args.py"
    text = arguments.read_text()
    old = "        if self.disable_decode_cuda_graph:\n"
    assert text.count(old) == 1
    asked = "        if self.get_hf_config().get('architectures') == ['Breaks']:\n"
    arguments.write_text(text.replace(old, f"{asked}            config.prefill.backend = Backend.DISABLED\n{old}"))
    made = mapped(program, checkout)
    phases = {path.name: path.reachable for path in made.paths}
    assert phases["target:prefill-breakable"] == "unresolved"
    assert phases["target:decode"] == "yes"
    assert made.labels == ("target:decode",)
    own = [s for s in made.sites if s.qualname.rpartition(":")[2].startswith("PrefillCudaGraphRunner.")]
    assert {site.reachable for site in own if site.role in ("capture", "replay")} == {"unresolved"}


def test_a_file_that_is_gone_and_still_imported_leaves_what_it_may_lead_to_open(
    program: Program, checkout: Path
) -> None:
    whole = {site.id: site for site in mapped(program, checkout).sites}
    lose(checkout / RUNNER)
    made = mapped(program, checkout)
    assert not [s.id for s in made.sites if s.reachable == "no" and whole[s.id].reachable == "yes"]
    tables = [
        s for s in made.sites if s.file.endswith("full_cuda_graph_backend.py") and s.role in ("capture", "replay")
    ]
    assert {site.reachable for site in tables} == {"unresolved"}
    (gap,) = material(made, "SGG061")
    assert "decode_cuda_graph_runner.py" in gap and "not in this checkout" in gap


@pytest.mark.parametrize(
    ("imported", "gone"),
    [
        # A package gives neither by its own file nor by one below it what is taken from it.
        ("from sglang.srt import nowhere\n", "sglang/srt/nowhere.py"),
        ("from sglang.srt.model_executor import runner, nothing_there\n", "sglang/srt/model_executor/nothing_there.py"),
        # Another file of that name defines what is taken, and nobody takes it from there.
        (
            "from sglang.srt.model_executor.scheduler import run_scheduler_process\n",
            "sglang/srt/model_executor/scheduler.py",
        ),
    ],
)
def test_a_submodule_that_is_gone_excludes_nothing_whatever_its_namesake_defines(
    program: Program, checkout: Path, imported: str, gone: str
) -> None:
    prepend(checkout / SCHEDULER, imported)
    (gap,) = material(mapped(program, checkout), "SGG061")
    assert gone in gap and "not in this checkout" in gap


def test_a_file_that_two_others_import_has_not_moved(program: Program, checkout: Path) -> None:
    """One import beside the right one is a slip; two files that expect it show that it was there."""
    stale = "from sglang.server_args import ServerArgs\n"
    prepend(checkout / SCHEDULER, stale)
    assert not material(mapped(program, checkout), "SGG061")
    prepend(checkout / SRT / "managers" / "tp_worker.py", stale)
    (gap,) = material(mapped(program, checkout), "SGG061")
    assert "sglang/server_args.py" in gap


def prepend(file: Path, imported: str) -> None:
    """Put an import before all others of a file."""
    text, first = file.read_text(), "from __future__ import annotations\n"
    file.write_text(text.replace(first, first + imported) if first in text else imported + text)


@pytest.mark.parametrize(
    ("imported", "words"),
    [
        ("try:\n    from sglang.srt.nowhere import thing\nexcept ImportError:\n    thing = None\n", ()),
        ("try:\n    import sglang.srt.nowhere\nexcept (ValueError, Exception):\n    pass\n", ()),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from sglang.srt.nowhere import thing\n", ()),
        ("from elsewhere.nowhere import thing\n", ()),
        ("from sglang.srt.elsewhere.server_args import ServerArgs\n", ()),
        ("from sglang.server_args import ServerArgs\n", ("sglang/server_args.py",)),
    ],
)
def test_imports_that_code_is_prepared_for_or_that_are_only_wrong_exclude_as_before(
    program: Program, checkout: Path, imported: str, words: tuple[str, ...]
) -> None:
    whole = mapped(program, checkout)
    prepend(checkout / SCHEDULER, imported)
    made = mapped(program, checkout)
    assert {s.id: s.reachable for s in made.sites} == {s.id: s.reachable for s in whole.sites}
    assert not material(made, "SGG061")
    assert all(any(word in gap.text for gap in made.gaps if gap.code == "SGG061") for word in words)
