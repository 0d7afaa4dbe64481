"""The examples in docstrings: where they are looked for, and their names, those of ``docs/reference/names.py``."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "dpnb"
NAMES = ROOT / "docs" / "reference" / "names.py"


@pytest.fixture
def doctest_namespace() -> dict[str, Any]:
    """The names, defined again for every docstring that is tested."""
    return runpy.run_path(str(NAMES))


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Iterator[None]:
    """Of the tests, look only at files with a prompt; each process would import and search the hundreds of others."""
    found: list[pytest.Collector] = yield
    if PACKAGE in file_path.parents or file_path.suffix != ".py" or ">>> " in file_path.read_text("utf-8"):
        return found
    return [collector for collector in found if not isinstance(collector, DoctestModule)]
