"""A stored map is carried over edits that the analysis could not tell, with its lines moved, and over no others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sgl_graph.analyzer.static.checkout.project import HintLog, Project
from sgl_graph.analyzer.static.checkout.questions import At, question
from sgl_graph.analyzer.static.extract.unasked import EVERY, STEPS
from sgl_graph.runtime.checkout import CheckoutSources
from sgl_graph.runtime.fact_store import FactStore
from sgl_graph.runtime.rebased import rebased
from sgl_graph.runtime.source_record import Carried, Moved, Record, carry, record_of

READ = """\
import logging
import os

logger = logging.getLogger(__name__)


def read(name):
    if not name:
        raise KeyError(f"no {name}")
    value = os.environ[name]
    return value


def unread(name):
    return name


class Table:
    def get(self, key=lambda: 1):
        assert key, "no key"
        return [key,
                self]


def spare(name, *, size=3):
    return [name, size]


LIMIT = 3
"""
SEEN = "# only looked through\n\n\ndef seen():\n    return Process(1)\n"
GET = 3


@question
def process_line(text: bytes) -> At | None:
    found = text.find(b"Process(")
    return At(text.count(b"\n", 0, found) + 1) if found >= 0 else None


@question
def letters(text: bytes, first: int, last: int) -> tuple[int, bool]:
    return len(b"\n".join(text.split(b"\n")[first - 1 : last])), False


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    package = tmp_path / "app"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "read.py").write_text(READ)
    (package / "seen.py").write_text(SEEN)
    (package / "inner").mkdir()
    (package / "inner" / "some.py").write_text("")
    return tmp_path


def sources(folder: Path) -> CheckoutSources:
    return CheckoutSources(folder, FactStore(folder / "cache"), jobs=1, folders=("app",))


def recorded(folder: Path) -> Record:
    """The record of an analysis that reads two functions of a module, and asks the texts of two."""
    files = sources(folder)
    project = Project(files)
    assert project.module("app") is not None
    module = project.module("app.read")
    assert module is not None
    assert [function.name for function in module.facts.functions] == ["read", "unread", "<lambda>", "get", "spare"]
    module.asked.update(["unread", "Table", "missing", "os"])
    module.function_body(0)
    module.evaluated_body(GET)
    assert not module.may_declare(1, "counter")
    project.sought.add("sought")
    project.patterns.add(("make_", "table"))
    project.questions.ask("app/seen.py", process_line)
    project.questions.ask("app/read.py", letters, At(18), At(22))
    project.hints.append(HintLog("app/", [["tokens"], ["names", ["Registry"]]], {}))
    record: Record = json.loads(json.dumps(record_of(files, project)))
    files.close()
    return record


def carried(folder: Path, record: Record) -> Carried | None:
    files = sources(folder)
    try:
        return carry(record, files)
    finally:
        files.close()


def test_untouched_files_hold(folder: Path) -> None:
    record = recorded(folder)
    assert [len(record["files"][path]) for path in sorted(record["files"])] == [5, 1, 5, 1]
    assert carried(folder, record) == Carried(record, {})


@pytest.mark.parametrize(
    ("name", "text", "holds"),
    [
        ("read.py", READ + "# a closing remark\n", True),
        ("read.py", "# a line before moves all others\n" + READ, True),
        ("read.py", READ.replace("os.environ[name]", "os.environ[name]  # remark"), True),
        ("read.py", READ.replace("    value", '    """Documented."""\n    value'), True),
        # bodies
        ("read.py", READ.replace("    return name", "    other = name\n    return lambda: other"), True),
        ("read.py", READ.replace("[name]", "['X']"), False),
        ("read.py", READ.replace("    return value", "    extra = 1\n    return value"), False),
        ("read.py", READ.replace("lambda: 1", "lambda: 2"), True),
        # what bodies that were read only say
        (
            "read.py",
            READ.replace(
                "    value =", "    logger.info(f'reading {name!r:>{name}}', name, exc_info=True)\n    value ="
            ),
            True,
        ),
        ("read.py", READ.replace("    value =", "    print('reading', name, end='')\n    value ="), True),
        ("read.py", READ.replace("    if not name:", "    if not name:\n        logger.debug('no %s' % name)"), True),
        ("read.py", READ.replace('"no {name}"', '"not one {name}"'), True),
        ("read.py", READ.replace('"no {name}"', '"no {name.text}"'), False),
        ("read.py", READ.replace('f"no {name}"', "name"), False),
        ("read.py", READ.replace('KeyError(f"', 'LookupError(f"'), False),
        ("read.py", READ.replace('"no key"', '"none"'), False),  # a body whose messages were read
        (
            "read.py",
            READ.replace("        assert", "        logger.info('get')\n        assert"),
            False,
        ),  # in `letters`
        ("read.py", READ.replace("    value =", "    logger.info(name.text)\n    value ="), False),
        ("read.py", READ.replace("    value =", "    logger.info(read(name))\n    value ="), False),
        ("read.py", READ.replace("    value =", "    logger.handle(name)\n    value ="), False),
        ("read.py", READ.replace("    value =", "    print(name, file=name)\n    value ="), False),
        ("read.py", READ.replace("    value =", "    log.info(name)\n    value ="), False),
        ("read.py", READ.replace("    value =", "    logger = print\n    logger.info(name)\n    value ="), False),
        ("read.py", READ.replace("    value =", "    logger.info('counter')\n    value ="), False),  # asked for above
        # headers and top level
        ("read.py", READ.replace("unread(name)", "unread(name: 'Name', /, more, *names) -> str"), True),
        ("read.py", READ.replace("unread(name)", "unread(name, more=1)"), False),
        ("read.py", READ.replace("def read(name)", "def read(name, more)"), False),
        ("read.py", READ.replace("def read(name)", "def read(name: str)"), False),
        ("read.py", READ.replace("def read(name)", "def read(name) -> str"), False),
        ("read.py", READ.replace("def unread", "async def unread"), False),
        ("read.py", READ.replace("def unread", "@os.wraps\ndef unread"), False),
        # names that nobody looked up
        ("read.py", READ + "VALUE = -1\n", True),
        ("read.py", READ + "OTHER = VALUE = 'text'\n", True),
        ("read.py", READ + "missing = 1\n", False),
        ("read.py", READ + "VALUE = missing = 1\n", False),
        ("read.py", READ + "VALUE = read\n", False),
        ("read.py", READ + "VALUE = []\n", False),
        ("read.py", READ + "VALUE: int = 1\n", False),
        ("read.py", READ + "VALUE = 1\nVALUE = 2\n", False),
        ("read.py", READ + "print = 1\n", False),
        ("read.py", READ + "__all__ = 1\n", False),
        ("read.py", READ + "inner = 1\n", True),
        ("__init__.py", "inner = 1\n", False),  # a module of the package
        ("__init__.py", "outer = 1\n", True),
        ("read.py", READ.replace("LIMIT = 3", "LIMIT = 4"), True),
        ("read.py", READ.replace("LIMIT = 3", "LIMIT = read"), False),
        ("read.py", READ.replace("LIMIT = 3\n", ""), True),
        ("read.py", READ.replace("LIMIT = 3", "def LIMIT():\n    return 3"), True),
        ("read.py", READ.replace("LIMIT = 3", "LIMIT = 3\n\n\ndef more():\n    global LIMIT"), False),
        ("read.py", READ + "\n\ndef more(name, size=None, *names) -> str:\n    return read(name)\n", True),
        ("read.py", READ.replace("class Table", "async def more():\n    pass\n\n\nclass Table"), True),
        ("read.py", READ + "\n\n@read\ndef more():\n    pass\n", False),
        ("read.py", READ + "\n\ndef more(name=read):\n    pass\n", False),
        ("read.py", READ + "\n\ndef missing():\n    pass\n", False),
        ("read.py", READ + "\n\nif read:\n    def more():\n        pass\n", False),
        ("read.py", READ + "\n\nclass More:\n    pass\n", False),
        ("read.py", READ + "\n\ndef read():\n    pass\n", False),
        ("read.py", READ.replace("size=3", "size=4, **more"), True),
        ("read.py", READ.replace("def spare", "@read\ndef spare"), False),
        ("read.py", READ.replace("def spare(name, *, size=3):\n    return [name, size]\n", ""), True),
        ("read.py", READ.replace("import os\n", "import json\nimport os\n"), True),
        ("read.py", READ.replace("import os\n", "import os.path\nimport os\n"), False),
        ("read.py", READ.replace("import os\n", "import os\nfrom json import dumps, loads as read_json\n"), True),
        ("read.py", READ.replace("import os\n", "import os\nfrom json import dumps as missing\n"), False),
        ("read.py", READ.replace("import os\n", "import os\nfrom json import *\n"), False),
        ("read.py", READ.replace("import os\n", "import os\nfrom app import inner\n"), False),
        ("read.py", READ.replace("import os\n", "import os\nfrom . import inner\n"), False),
        ("read.py", READ.replace("import os\n", "import os\nimport app.inner\n"), False),
        ("read.py", READ.replace("class Table", "class Table(dict)"), False),
        ("read.py", READ.replace("import os", "import os as os"), False),
        ("read.py", READ + "def half(:\n", False),
        # what the text was asked for
        ("read.py", READ.replace("return [key,", "return [key,  # longer"), False),
        ("read.py", READ.replace("    return name", "    global counter\n    counter = name"), False),
        ("read.py", READ.replace("    return name", "    return Registry"), False),
        ("read.py", READ + "# torch.cuda.CUDAGraph\n", False),
        # positions
        ("read.py", READ.replace("[key,\n                self]", "[key, self]"), False),
        ("read.py", READ.replace("import os\n", "import os; 1\n"), False),
        # text alone
        ("seen.py", SEEN.replace("# only", "\n# but only"), True),
        ("seen.py", SEEN.replace("return Process", "x = 2; return Process"), True),
        ("seen.py", SEEN.replace("Process", "Thread"), False),
        ("seen.py", SEEN + "# Registry\n", False),
    ],
)
def test_an_edit_holds_only_where_the_analysis_cannot_tell(folder: Path, name: str, text: str, holds: bool) -> None:
    record = recorded(folder)
    assert text not in (READ, SEEN)
    (folder / "app" / name).write_text(text)
    assert (carried(folder, record) is not None) is holds


METHOD = "class Table:\n    def fill(self, size=3):\n        return [self]\n\n"


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        (READ.replace("class Table:\n", METHOD), True),
        (READ.replace("class Table:\n", METHOD).replace("def fill", "def sought"), False),
        (READ.replace("class Table:\n", METHOD).replace("def fill", "def missing"), False),  # as a name of the module
        (READ.replace("class Table:\n", METHOD).replace("def fill", "def make_table"), False),
        (READ.replace("class Table:\n", METHOD).replace("def fill", "def make_tables"), True),
        (READ.replace("class Table:\n", METHOD).replace("def fill", "def get"), False),
        (READ.replace("class Table:\n", METHOD).replace("def fill", "def __len__"), False),
        (READ.replace("class Table:\n", METHOD).replace("def fill", "def print"), False),
        (READ.replace("class Table:\n", METHOD).replace("    def fill", "    @property\n    def fill"), False),
        (READ.replace("class Table:\n", METHOD).replace("size=3):\n        return [self]", "size=read): pass"), False),
        (READ.replace("class Table:\n", METHOD + "    def fill(self):\n        pass\n\n"), False),
        (READ.replace("class Table:\n", METHOD + "    fill: int\n"), False),
        (READ.replace("key=lambda: 1", "key=fill").replace("class Table:\n", METHOD), False),
        (READ.replace("class Table:\n", "class Table:\n    size = 3\n"), False),
    ],
)
def test_a_method_that_nobody_looked_for_in_any_class_holds(folder: Path, text: str, holds: bool) -> None:
    record = recorded(folder)
    record["questions"] = [asked for asked in record["questions"] if "letters" not in asked[0]]  # as long as the class
    assert text != READ
    (folder / "app" / "read.py").write_text(text)
    first = carried(folder, record)
    assert (first is not None) is holds
    if first is not None:
        (folder / "app" / "read.py").write_text(READ)
        back = carried(folder, first.record)
        assert back is not None and back.record == record
        record["files"]["app/read.py"][4] = [EVERY]
        (folder / "app" / "read.py").write_text(text)
        assert carried(folder, record) is None


@pytest.mark.parametrize(
    "mention",
    [
        "other = fill",
        "class Inner(fill):\n        pass",
        "class Inner:\n        other = fill",
        "def more(self, size=[fill]):\n        pass",
    ],
)
def test_a_method_that_its_class_mentions_may_not_go(folder: Path, mention: str) -> None:
    text = READ.replace("class Table:\n", METHOD + f"    {mention}\n\n")
    (folder / "app" / "read.py").write_text(text)
    files = sources(folder)
    project = Project(files)
    module = project.module("app.read")
    assert module is not None
    module.asked.add("Table")
    record: Record = json.loads(json.dumps(record_of(files, project)))
    files.close()
    (folder / "app" / "read.py").write_text(text.replace("    def fill(self, size=3):\n        return [self]\n\n", ""))
    assert carried(folder, record) is None


def test_where_everything_was_gone_through_a_new_name_does_not_hold(folder: Path) -> None:
    record = recorded(folder)
    (folder / "app" / "read.py").write_text(READ + "VALUE = 1\n")
    assert carried(folder, record) is not None
    assert record["files"]["app/read.py"][4] == ["Table", "missing", "os", "unread"]
    record["files"]["app/read.py"][4] = [EVERY]
    assert carried(folder, record) is None
    (folder / "app" / "read.py").write_text(READ.replace("unread(name)", "unread(name, more)"))
    assert carried(folder, record) is None
    (folder / "app" / "read.py").write_text(READ.replace("return name\n", "return 1\n"))
    assert carried(folder, record) is not None


def test_where_statements_were_counted_one_more_does_not_hold(folder: Path) -> None:
    record = recorded(folder)
    record["files"]["app/read.py"][4].append(STEPS)
    (folder / "app" / "read.py").write_text("import json\n" + READ)
    assert carried(folder, record) is None
    (folder / "app" / "read.py").write_text("from json import dumps\n" + READ)
    assert carried(folder, record) is not None


def test_lines_are_paired_and_the_record_goes_on_from_there(folder: Path) -> None:
    record = recorded(folder)
    (folder / "app" / "read.py").write_text(
        "# one\n# two\n" + READ.replace("    return name", "    pass\n    return name")
    )
    (folder / "app" / "seen.py").write_text("\n" + SEEN)
    first = carried(folder, record)
    assert first is not None
    assert {old: first.moved["app/read.py"].lines[old] for old in (2, 7, 14, 18, 22)} == {
        2: 4,
        7: 9,
        14: 16,
        18: 21,
        22: 25,
    }
    assert first.moved["app/seen.py"].lines == {5: 6}
    assert carried(folder, first.record) == Carried(first.record, {})
    (folder / "app" / "read.py").write_text(READ)
    (folder / "app" / "seen.py").write_text(SEEN)
    back = carried(folder, first.record)
    assert back is not None and back.record == record


def test_files_that_come_or_go_do_not_hold(folder: Path) -> None:
    record = recorded(folder)
    (folder / "app" / "new.py").write_text("")
    assert carried(folder, record) is None
    (folder / "app" / "new.py").unlink()
    assert carried(folder, record) is not None
    (folder / "app" / "seen.py").unlink()
    assert carried(folder, record) is None


def test_without_the_facts_of_the_old_text_nothing_holds(folder: Path) -> None:
    record = recorded(folder)
    for store in (folder / "cache").iterdir():
        store.unlink()
    (folder / "app" / "read.py").write_text(READ + "# remark\n")
    assert carried(folder, record) is None


MOVED = {"app/read.py": Moved("app.read", {4: 6, 9: 10, 12: 20})}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"file": "app/read.py", "line": 4}, {"file": "app/read.py", "line": 6}),
        ({"file": "app/other.py", "line": 4}, {"file": "app/other.py", "line": 4}),
        ({"file": "app/read.py", "line": None}, {"file": "app/read.py", "line": None}),
        ({"file": "app/read.py", "line": 5}, None),
        (["declared at app/read.py:12, see app/other.py:4"], ["declared at app/read.py:20, see app/other.py:4"]),
        (["src/app/read.py:12"], ["src/app/read.py:12"]),
        (["app/read.py:5"], None),
        (["app.read:f.<locals>.<lambda:12.2>"], ["app.read:f.<locals>.<lambda:20.2>"]),
        (["app.other:<lambda:12>"], ["app.other:<lambda:12>"]),
        (["by <lambda:12>"], None),
        # 12 and 9 are sorted otherwise as texts than 20 and 10 are.
        (["app/read.py:12", "app/read.py:9"], None),
    ],
)
def test_lines_move_wherever_a_map_shows_them(before: object, after: object) -> None:
    assert rebased(before, MOVED) == after


def test_a_file_that_cannot_be_read_any_more_or_again_does_not_hold(folder: Path) -> None:
    record = recorded(folder)
    (folder / "app" / "__init__.py").unlink()
    (folder / "app" / "__init__.py").mkdir()
    assert carried(folder, record) is None
    (folder / "app" / "__init__.py").rmdir()
    (folder / "app" / "__init__.py").symlink_to("/dev/null")  # nothing to read, and no plain file
    assert carried(folder, record) is None
