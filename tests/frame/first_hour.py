"""The two tables on which `first_hour.toml` is typed, small and synthetic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpnb
from frame.habits_tables import BUDGET

YES = [0, 1]
REGISTRY = {
    "year": dpnb.Categories([1984, 1985, 1986, 1987, 1988]),
    "docvis": dpnb.Bounded(0, 60),
    "hospvis": dpnb.Bounded(0, 30),
    "age": dpnb.Bounded(25, 64),
    **{name: dpnb.Categories(YES) for name in ("female", "married", "outwork")},
    "educ": dpnb.Bounded(7, 18),
    "hhninc": dpnb.Bounded(0, 10),
    "edlevel": dpnb.Categories([1, 2, 3, 4]),
}
TESTS = {
    "test_date": dpnb.Dates("2020-03-01", "2020-06-30"),
    "result": dpnb.Categories(["invalid", "negative", "positive"]),
    "gender": dpnb.Categories(["female", "male"]),
    "payor_group": dpnb.Categories(["commercial", "government", "unassigned"]),
    "demo_group": dpnb.Categories(["client", "patient", "staff"]),
    "clinic_name": dpnb.Text(),
    "age": dpnb.Bounded(0, 120),
    "ct_result": dpnb.Bounded(14, 46),
    "col_rec_tat": dpnb.Bounded(0, 100),
}


def frames(folder: Path) -> dict[str, Any]:
    """``df``, a health registry with a row for each person and year, and ``cv``, laboratory tests; and an answer."""
    rng = np.random.default_rng(50)
    years = [1984, 1985, 1986, 1987, 1988]
    registry = {
        "id": np.repeat(np.arange(40), 5),
        "year": np.tile(years, 40),
        "docvis": rng.poisson(3, 200),
        "hospvis": rng.poisson(0.2, 200),
        "age": rng.integers(25, 65, 200),
        **{name: rng.integers(0, 2, 200) for name in ("female", "married", "outwork")},
        "educ": rng.uniform(7, 18, 200),
        "hhninc": rng.uniform(0, 10, 200),
        "edlevel": rng.integers(1, 5, 200),
    }
    visits = pd.DataFrame(
        {
            "subject_id": np.arange(200) // 2,
            "test_date": pd.Timestamp("2020-03-01") + pd.to_timedelta(rng.integers(0, 120, 200), unit="D"),
            **{name: rng.choice(TESTS[name].values, 200) for name in TESTS if hasattr(TESTS[name], "values")},
            "clinic_name": rng.choice(["north", "south"], 200),
            "age": rng.uniform(0, 100, 200),
            "ct_result": np.where(rng.random(200) < 0.2, np.nan, rng.uniform(14, 46, 200)),
            "col_rec_tat": rng.exponential(5, 200),
        }
    )
    df = _frame(folder / "registry", pd.DataFrame(registry), REGISTRY, "id")
    cv = _frame(folder / "tests", visits, TESTS, "subject_id")
    return {"df": df, "cv": cv, "answer": df.groupby("year")["docvis"].mean().release(mu=1)}


def _frame(ledger: Path, rows: pd.DataFrame, schema: Any, unit: str) -> Any:
    session = dpnb.Session(
        rows, name=ledger.name, budget=BUDGET, schema=schema, privacy_unit=unit, max_rows_per_unit=5, ledger=ledger
    )
    return session.frame
