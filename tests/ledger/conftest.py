"""Where the ledger of a test lies."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.register_assert_rewrite("ledger.rows")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "clinic.dpnb"
