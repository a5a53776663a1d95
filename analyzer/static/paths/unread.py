"""Code that the analysis could not see: files that are no Python or could not be read, and files that are gone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sgl_graph.analyzer.static.checkout.project import Project
from sgl_graph.analyzer.static.checkout.questions import question
from sgl_graph.analyzer.static.linked import Absent, Linked


def problems_of(project: Project, linked: Linked | None) -> dict[str, str]:
    """Files that are no Python, or could not be read at all, folders that could not be listed, and files that are gone."""
    unread = {m.path: m.facts.error for m in project.loaded() if m.facts.error is not None}
    gone = {_path(name): _where(absent) for name, absent in linked.absent.items()} if linked is not None else {}
    return {**project.sources.lost(), **unread, **gone}


def unread_by(project: Project, linked: Linked | None) -> tuple[str, ...]:
    """Files that code which runs imports, and that could not be read or are not there: they may lead to anything."""
    if linked is None:
        return ()
    broken = {m.path for m in project.loaded() if m.facts.error is not None}
    gone = {_path(name) for name, absent in linked.absent.items() if not _has_moved(project, name, absent)}
    return tuple(sorted(broken & linked.problems.keys() | gone))


def lost_of(project: Project, unread: Sequence[str], problems: Mapping[str, str]) -> frozenset[str]:
    """Unread files that may matter: code that runs imports them, or their text speaks of graphs."""
    return frozenset(unread) | {path for log in project.hints for path in log.taken if path in problems}


def cut_short(linked: Linked | None, problems: Mapping[str, str]) -> dict[str, str]:
    """Files whose code the linker left before its values settled."""
    return {f: why for f, why in sorted(linked.problems.items()) if f not in problems} if linked is not None else {}


def _path(module: str) -> str:
    return module.replace(".", "/") + ".py"


def _where(absent: Absent) -> str:
    return f"imported by {absent.file}:{absent.line}, and not in this checkout"


def _has_moved(project: Project, module: str, absent: Absent) -> bool:
    """Whether only the import is wrong: the one file that has it takes the same from elsewhere, too, where it is defined.

    That a file of the same name defines the same elsewhere proves nothing: many files are called `utils.py`, and what is
    made for one device is made for others under the same names.
    """
    last, names = module.rpartition(".")[2], sorted(absent.names)
    if not names or len(absent.importers) != 1:
        return False
    return any(
        project.questions.ask(absent.file, takes_all, home, *names) and project.questions.ask(path, defines_all, *names)
        for home in project.names()
        if home.rpartition(".")[2] == last and (path := project.path_of(home)) is not None
    )


@question
def takes_all(text: bytes, module: str, *names: str) -> bool:
    """Whether a file imports all these names from a module, by its full name."""
    statement = rb"^[ \t]*from[ \t]+%s[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)" % re.escape(module.encode())
    taken = b" ".join(re.findall(statement, text, re.MULTILINE))
    return all(re.search(rb"\b%s\b" % re.escape(name.encode()), taken) for name in names)


@question
def defines_all(text: bytes, *names: str) -> bool:
    """Whether a file's top level defines functions, classes or variables of all these names."""
    return all(
        re.search(rb"^(?:async def |def |class )?%s\b\s*[(:=]" % re.escape(n.encode()), text, re.MULTILINE)
        for n in names
    )
