"""The maximal length of a text column is part of the declaration."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpnb
from dpnb.errors import LedgerError


def opened(path: Path, column: dpnb.Text) -> dpnb.Session:
    return dpnb.Session(
        pd.DataFrame({"t": ["a", "much too long", None]}),
        name="texts",
        budget=dpnb.Budget.gdp(2),
        schema={"t": column},
        ledger=path,
        not_private_test_seed=1,
    )


def stored(path: Path) -> Any:
    with sqlite3.connect(path) as connection:
        return "".join(connection.iterdump())


def test_a_ledger_serves_only_the_length_with_which_it_was_made(tmp_path: Path) -> None:
    path = tmp_path / "texts.dpnb"
    first = opened(path, dpnb.Text(max_length=4))
    total = first.frame["t"].str.len().sum().release(mu=1.0)
    first.ledger.close()
    again = opened(path, dpnb.Text(max_length=4))
    assert again.frame["t"].str.len().sum().release(mu=1.0).estimate == total.estimate
    again.ledger.close()
    for other in (dpnb.Text(), dpnb.Text(max_length=5)):
        with pytest.raises(LedgerError):
            opened(path, other)


def test_a_text_without_a_length_is_stored_as_before(tmp_path: Path) -> None:
    """Ledgers that were made before there were lengths stay readable."""
    opened(tmp_path / "texts.dpnb", dpnb.Text()).ledger.close()
    text = stored(tmp_path / "texts.dpnb")
    assert json.dumps({"type": "text"}, separators=(",", ":")) in text.replace(" ", "")
    assert "max_length" not in text
