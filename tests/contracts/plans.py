"""Plans of tables that stay in an engine: which are refused because their rows need not be the same each time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpnb
from dpnb.errors import SchemaError

TABLE = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "s": ["a", "a", "b", "b"]})


def opened(table: Any, ledger: Path) -> dpnb.Session:
    schema = {"x": dpnb.Bounded(0, 6)}
    return dpnb.Session(table, name="plan", budget=dpnb.Budget.gdp(1), schema=schema, ledger=ledger)


def refused(table: Any, what: str, ledger: Path) -> None:
    with pytest.raises(SchemaError, match=f"its plan has {what}.*into a file") as error:
        opened(table, ledger)
    assert "secret" not in str(error.value)
    assert not ledger.exists()


Plans = tuple[dict[str, tuple[Any, str]], dict[str, Any]]
"""Plans that are refused, with what is said of them, and plans that are not."""


def judged(plans: Plans, folder: Path) -> None:
    unstable, stable = plans
    for number, (table, what) in enumerate(unstable.values()):
        refused(table, what, folder / f"refused {number}.dpnb")
    for name, table in stable.items():
        assert opened(table, folder / f"{name}.dpnb").ledger.count == 0, name
