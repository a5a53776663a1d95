"""The documents say what the program does: options, codes, links, and nothing of anybody's machine."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from sgl_graph.cli.exits import ExitCode

from tests.contract.command_line import COMMANDS, option_names, shown_options

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text("utf-8")
PAGES = sorted(
    [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "fixtures").rglob("*.md"), *ROOT.glob("benchmarks/*.md")]
)


def sections(command: str) -> list[str]:
    """The parts of the reference that are about a command, by their headings."""
    found = []
    for page in sorted((DOCS / "reference").glob("*.md")):
        text = page.read_text("utf-8")
        title, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
        whole_page = page.stem == command
        found += [part for part in [title, *parts] if whole_page or part.startswith(f"sgl-graph {command}")]
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_the_reference_names_every_option(command: str) -> None:
    """And no option of that command's table is one that it does not have."""
    text = "\n".join(sections(command))
    assert text, f"docs/reference has no section on {command}"
    declared = {name for name in option_names(command) if name.startswith("--")}
    missing = declared - shown_options(text) - {"--help", "--quiet", "--verbose"}
    assert missing == set()
    rows = {name for row in re.findall(r"^\| (`--[^|]*)\|", text, flags=re.MULTILINE) for name in shown_options(row)}
    every = set().union(*(option_names(name) for name in COMMANDS))
    assert rows - every == set()


@pytest.mark.parametrize("command", COMMANDS)
def test_the_readme_names_every_command(command: str) -> None:
    assert f"`{command}`" in README or f"sgl-graph {command}" in README


@pytest.mark.parametrize("code", list(ExitCode), ids=lambda code: code.name)
def test_the_readme_names_every_exit_code(code: ExitCode) -> None:
    assert re.search(rf"^\| {int(code)} \|", README, flags=re.MULTILINE)


def typed_commands(text: str) -> Iterator[list[str]]:
    """Every `sgl-graph ...` command that stands in a code block, joined over continued lines."""
    for block in re.findall(r"^```[a-z]*\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            typed = line.removeprefix("$ ").partition("  #")[0].strip()
            if typed.startswith("sgl-graph "):
                yield shlex.split(typed)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_documents_use_options_that_exist(page: Path) -> None:
    for _, command, *words in typed_commands(page.read_text("utf-8")):
        own = words[: words.index("--")] if "--" in words else words
        used = {word.partition("=")[0] for word in own if word.startswith("-")}
        assert command in COMMANDS
        assert used <= option_names(command)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
    broken = [to for to in targets if "://" not in to and not (page.parent / to).exists()]
    assert broken == []


def test_every_page_is_in_an_index() -> None:
    """From docs/README.md, every page is one link away, or two through the index of its folder."""
    top = (DOCS / "README.md").read_text("utf-8")
    pages = [page for page in DOCS.rglob("*.md") if page.name != "README.md" and page.parent.name != "measurements"]

    def linked(page: Path) -> bool:
        index = page.parent / "README.md"
        listed = page.name in index.read_text("utf-8") if index.exists() else False
        folder = f"{page.parent.name}/README.md" in top
        return str(page.relative_to(DOCS)) in top or (folder and listed)

    lost = {str(page.relative_to(DOCS)) for page in pages if not linked(page)}
    assert lost == set()


def test_decisions_have_numbers_of_their_own_and_the_same_parts() -> None:
    decisions = sorted(page for page in (DOCS / "adr").glob("*.md") if page.name != "README.md")
    numbers = [page.name.partition("-")[0] for page in decisions]
    assert len(numbers) == len(set(numbers))
    for page in decisions:
        text = page.read_text("utf-8")
        assert re.match(rf"# (ADR )?0*{int(page.name.partition('-')[0])}[.:]? ", text), page.name


def test_no_path_of_a_machine_is_committed() -> None:
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if files.returncode:
        pytest.fail("not a git checkout: run the tests from one")
    homes = re.compile(r"(?<![\w.}])/(?:root|work|Users|home(?!/somebody))/[a-z]")
    found = []
    for name in filter(None, files.stdout.split("\0")):
        path = ROOT / name
        if (
            path.is_file()
            and path.resolve() != Path(__file__).resolve()
            and path.suffix in {".py", ".md", ".toml", ".json", ""}
        ):
            text = path.read_text("utf-8", errors="replace")
            found += [f"{name}:{text.count(chr(10), 0, hit.start()) + 1}" for hit in homes.finditer(text)]
    assert found == []
