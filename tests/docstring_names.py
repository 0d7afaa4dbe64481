"""The examples in docstrings: where they are looked for, and their names, those of ``docs/reference/names.py``."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from _pytest.doctest import DoctestItem, DoctestModule

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "dpnb"
NAMES = ROOT / "docs" / "reference" / "names.py"


@cache
def first_names() -> dict[str, Any]:
    """The names as they are defined once."""
    return runpy.run_path(str(NAMES))


UNCHARGED: list[dict[str, Any]] = []
"""The names of an earlier docstring, if it has charged nothing."""


@pytest.fixture
def doctest_namespace(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """The names, for a docstring that uses one: as they are defined, or left by one that has charged nothing."""
    assert isinstance(request.node, DoctestItem)
    used = {word for example in request.node.dtest.examples for word in re.findall(r"\w+", example.source)}
    modules = {name: value for name, value in first_names().items() if isinstance(value, ModuleType)}
    if used.isdisjoint(first_names().keys() - modules.keys()):
        yield modules
        return
    names = UNCHARGED.pop() if UNCHARGED else runpy.run_path(str(NAMES))
    frames = {name: value.copy() for name, value in names.items() if isinstance(value, names["dpnb"].Frame)}
    yield {**names, **frames}  # columns are assigned to copies
    if not any(frame.count().runner.account.ledger.count for frame in (names["df"], names["people"])):
        UNCHARGED.append(names)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Iterator[None]:
    """Of the tests, look only at files with a prompt; each process would import and search the hundreds of others."""
    found: list[pytest.Collector] = yield
    if PACKAGE in file_path.parents or file_path.suffix != ".py" or ">>> " in file_path.read_text("utf-8"):
        return found
    return [collector for collector in found if not isinstance(collector, DoctestModule)]
