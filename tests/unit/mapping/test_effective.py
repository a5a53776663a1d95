"""What is left of statements that only say something: what their arguments run, and nothing where the names may be others."""

from __future__ import annotations

import textwrap

import pytest
from sgl_graph.analyzer.static.extract import facts as f
from sgl_graph.analyzer.static.extract.effective import effective, speech_of
from sgl_graph.analyzer.static.extract.lower import extract

HEAD = "import logging\nlogger = logging.getLogger(__name__)\n"


def bodies(body: str, head: str, messages: bool) -> tuple[list[f.Statement], list[f.Statement]]:
    """The last function's body in that form, and as it was written; all in one line, so that lines say nothing."""
    facts = extract((head + "def run(x, self):\n" + textwrap.indent(body, "    ")).encode())
    assert facts.error is None
    written = f.statements(facts.functions[-1])
    return effective(f.statements(facts.functions[-1]), speech_of(facts), messages=messages), written


def left(body: str, head: str = HEAD) -> list[f.Statement]:
    return bodies(body, head, False)[0]


@pytest.mark.parametrize(
    ("said", "does"),
    [
        ("logger.info('a')", ""),
        ("logger.warning(f'{x} of {x!r:>{x}}', exc_info=True)", ""),
        ("logger.error('%s %d' % (x, 3))", ""),
        ("logger.log(logging.INFO, x)", "logging.INFO"),
        ("logger.debug('%s', self.size)", "self.size"),
        ("logger.debug(f'{self.size} {x} {x[0]}', *x.rest, extra=x.more())", "self.size; x[0]; x.rest; x.more()"),
        ("print(x, 'of', self.size(x), sep='', flush=True)", "self.size(x)"),
        ("print(x + x)", "x + x"),
        ("print(*[x, self.size])", "self.size"),
    ],
)
def test_a_call_that_says_something_leaves_what_it_runs(said: str, does: str) -> None:
    assert left(f"{said}; return x") == bodies(f"{does}; return x" if does else "return x", HEAD, True)[1]


def test_nested_blocks_are_looked_through() -> None:
    text = (
        "if x:\n    {0}\nelif self:\n    {0}\nelse:\n    {0}\nfor y in x:\n    {0}\nelse:\n    {0}\nwhile x:\n    {0}\n"
        "with x:\n    {0}\ntry:\n    {0}\nexcept E:\n    {0}\nelse:\n    {0}\nfinally:\n    {0}\nmatch x:\n    case 1:\n        {0}\n"
    )
    assert left(text.format("logger.info(x)")) == bodies(text.format("pass"), HEAD, True)[1]


@pytest.mark.parametrize(
    "kept",
    [
        "logger.handle(x)",
        "logger.addFilter(x)",
        "logger.info",
        "logger.info('a', then=x)",
        "print(x, file=self)",
        "self.logger.info(x)",
        "x = logger.info('a')",
        "return print(x)",
    ],
)
def test_other_statements_stay(kept: str) -> None:
    found, written = bodies(kept, HEAD, False)
    assert found == written and len(written) == 1


@pytest.mark.parametrize(
    "head",
    [
        "logger = logging.getLogger(__name__)\n",
        "import logging as logging2, log as logging\nlogger = logging.getLogger(__name__)\n",
        "from . import logging\nlogger = logging.getLogger(__name__)\n",
        "import logging\nimport app as logging\nlogger = logging.getLogger(__name__)\n",
        "import logging\nlogger = logging.Logger(__name__)\n",
        "import logging\nif x:\n    logger = logging.getLogger(__name__)\n",
        HEAD + "logger = Mine()\n",
        HEAD + "from app import logger\n",
        HEAD + "import app.log as logger\n",
        HEAD + "from app import *\n",
        HEAD + "for logger in LOGGERS:\n    pass\n",
        HEAD + "if x:\n    with x as logger:\n        pass\n",
        HEAD + "try:\n    pass\nexcept E as logger:\n    pass\n",
        HEAD + "y = (logger := 3)\n",
        HEAD + "del logger\n",
        HEAD + "def logger():\n    pass\n",
        HEAD + "def set(other):\n    global logger\n    logger = other\n",
        HEAD + "class A:\n    if x:\n        global logger\n        logger = Mine()\n",
        HEAD + "def around(logger):\n    pass\n",
        HEAD + "def around():\n    from app import logger\n",
    ],
)
def test_a_name_that_may_stand_for_something_else_is_no_logger(head: str) -> None:
    found, written = bodies("logger.info(x)", head, False)
    assert found == written


@pytest.mark.parametrize(
    ("head", "says"),
    [("", True), ("from rich import print\n", False), ("print = log\n", False), ("def f(print): pass\n", False)],
)
def test_print_is_the_builtin_where_nothing_else_has_its_name(head: str, says: bool) -> None:
    assert (left("print(x)", head) == []) is says


@pytest.mark.parametrize(
    ("said", "does"),
    [
        ("raise ValueError(f'no {x} in {self.size}')", "raise ValueError(self.size)"),
        ("raise ValueError('no', x, 3)", "raise ValueError(x)"),
        ("raise ValueError('no' + self.size())", "raise ValueError(self.size())"),
        ("assert x, f'no {x}'", "assert x"),
        ("assert x, f'no {self.size}'", "assert x, (self.size,)"),
    ],
)
def test_messages_are_left_out_unless_they_are_asked_for(said: str, does: str) -> None:
    assert left(said) == bodies(does, HEAD, True)[1]
    shown, written = bodies(said, HEAD, True)
    assert shown == written


@pytest.mark.parametrize(
    ("head", "kept"),
    [
        (HEAD, "raise Mine('no')"),
        (HEAD + "from app import ValueError\n", "raise ValueError('no')"),
        (HEAD, "raise self.error('no')"),
        (HEAD, "raise ValueError"),
    ],
)
def test_exceptions_of_the_checkout_are_made_of_their_messages(head: str, kept: str) -> None:
    found, written = bodies(kept, head, False)
    assert found == written
