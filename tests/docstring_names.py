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


@pytest.fixture
def doctest_namespace(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The names, defined again for every docstring that is tested and uses one; modules are the same for all."""
    assert isinstance(request.node, DoctestItem)
    used = {word for example in request.node.dtest.examples for word in re.findall(r"\w+", example.source)}
    modules = {name: value for name, value in first_names().items() if isinstance(value, ModuleType)}
    return runpy.run_path(str(NAMES)) if used & (first_names().keys() - modules.keys()) else modules


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Iterator[None]:
    """Of the tests, look only at files with a prompt; each process would import and search the hundreds of others."""
    found: list[pytest.Collector] = yield
    if PACKAGE in file_path.parents or file_path.suffix != ".py" or ">>> " in file_path.read_text("utf-8"):
        return found
    return [collector for collector in found if not isinstance(collector, DoctestModule)]
