"""The names that the examples in docstrings use: those of ``docs/reference/names.py``, new for each docstring."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

NAMES = Path(__file__).resolve().parents[1] / "docs" / "reference" / "names.py"


@pytest.fixture(autouse=True)
def names_of_the_examples(request: pytest.FixtureRequest) -> None:
    """Define the names again for every docstring that is tested."""
    if isinstance(request.node, pytest.DoctestItem):
        names: dict[str, Any] = request.getfixturevalue("doctest_namespace")
        names.update(runpy.run_path(str(NAMES)))
