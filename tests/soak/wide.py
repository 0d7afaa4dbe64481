"""The table of a service under hostile load: few rows, and columns enough for plans with very many features."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import dpnb
from dpnb.errors import SchemaWarning
from service.bodies import ROWS as SMALL
from service.bodies import SCHEMA as SMALL_SCHEMA

COLUMNS, PARTS, LARGE = 100, 20_000, 20_000
SCHEMA = {
    **SMALL_SCHEMA,
    "visits": dpnb.Bounded(0, 100),
    "many": dpnb.Bounded(0, PARTS - 1, integer=True),
    **{f"c{number}": dpnb.Bounded(0, 1) for number in range(COLUMNS)},
}


def rows(number: int) -> pd.DataFrame:
    """The columns of the fuzzed bodies, repeated, beside a hundred of numbers."""
    chance, each = np.random.default_rng(1), np.arange(number)
    small = SMALL.iloc[each % len(SMALL)].reset_index(drop=True)
    small = small.assign(who=each // 2, visits=each % 90, many=each % PARTS)
    wide = pd.DataFrame(chance.random((number, COLUMNS)), columns=[f"c{one}" for one in range(COLUMNS)])
    return pd.concat([small, wide], axis=1)


def opened(ledger: Path, number: int) -> dpnb.Session:
    """A session with a budget that lasts for a run, but not for an analyst who wants to spend it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SchemaWarning)
        return dpnb.Session(
            rows(number),
            name="clinic",
            privacy_unit="who",
            max_rows_per_unit=2,
            budget=dpnb.Budget.gdp(3, discovery_delta=1e-6),
            schema=SCHEMA,
            ledger=ledger,
        )
