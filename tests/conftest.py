"""Fixtures that any test may ask for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fixtures.sglang_release import ReleaseUnavailable, source

ROOT = Path(__file__).parents[1]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a module's fixture stay in one worker of a parallel run, so that it is made once."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None and _shares_a_module_fixture(item):
            item.add_marker(pytest.mark.xdist_group(str(item.path.relative_to(ROOT))))


def _shares_a_module_fixture(item: pytest.Item) -> bool:
    if not isinstance(item, pytest.Function):
        return False
    fixtures = item._fixtureinfo.name2fixturedefs.values()
    return any(definition.scope == "module" for definitions in fixtures for definition in definitions)


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def sglang_source() -> Callable[[str], Path]:
    """`sglang_source("0.5.23")` is the folder that holds `sglang/` of that release.

    A release that cannot be had fails the test: a skipped test would look like a passed one.
    """

    def folder(version: str) -> Path:
        try:
            return source(version)
        except ReleaseUnavailable as error:
            pytest.fail(str(error), pytrace=False)

    return folder
