"""The names that the examples in docstrings use: those of ``docs/reference/names.py``, new for each docstring."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

NAMES = Path(__file__).resolve().parents[1] / "docs" / "reference" / "names.py"


@pytest.fixture
def doctest_namespace() -> dict[str, Any]:
    """The names, defined again for every docstring that is tested."""
    return runpy.run_path(str(NAMES))
