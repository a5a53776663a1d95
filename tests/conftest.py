"""Fixtures that any test may ask for."""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from sgl_graph.analyzer.static.checkout.project import Project
from sgl_graph.runtime.checkout import CheckoutSources
from sgl_graph.runtime.fact_store import FactStore, default_folder

from fixtures.sglang_release import ReleaseUnavailable, source

ROOT = Path(__file__).parents[1]


def pytest_configure() -> None:
    """Programs that tests interrupt notice it, also where a shell runs the tests in the background: that has all below it ignore interruptions."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


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


@pytest.fixture(scope="session")
def sglang_project(sglang_source: Callable[[str], Path]) -> Callable[[str], Project]:
    """`sglang_project("0.5.23")` is that release as the analyser sees it, read once for all tests of a process."""

    @cache
    def project(version: str) -> Project:
        return Project(CheckoutSources(sglang_source(version), FactStore(default_folder()), jobs=1))

    return project
