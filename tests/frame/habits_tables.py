"""Small synthetic tables with the schemas of the tables on which the habits were collected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpnb

INDUSTRIES = [
    "Agricultural", "Mining", "Construction", "Trade", "Transportation", "Finance", "Business_and_Repair_Service",
    "Personal_Service", "Entertainment", "Manufacturing", "Professional_and_Related Service", "Public_Administration",
]  # fmt: skip
OCCUPATIONS = [
    "Professional, Technical_and_kindred", "Managers, Officials_and_Proprietors", "Sales_Workers",
    "Clerical_and_kindred", "Craftsmen, Foremen_and_kindred", "Operatives_and_kindred", "Laborers_and_farmers",
    "Farm_Laborers_and_Foreman", "Service_Workers",
]  # fmt: skip
YES_NO = ["no", "yes"]
BUDGET = dpnb.Budget(epsilon=1e5, delta=1e-6, discovery_delta=1e-7)

WAGES = {
    "year": dpnb.Bounded(1980, 1987, integer=True),
    "school": dpnb.Bounded(0, 20, integer=True),
    "exper": dpnb.Bounded(0, 20, integer=True),
    "union": dpnb.Categories(YES_NO),
    "ethn": dpnb.Categories(["other", "black", "hisp"]),
    "married": dpnb.Categories(YES_NO),
    "health": dpnb.Categories(YES_NO),
    "wage": dpnb.Bounded(-4, 5),
    "residence": dpnb.Categories(["rural_area", "north_east", "nothern_central", "south"]),
    "industry": dpnb.Categories(INDUSTRIES),
    "occupation": dpnb.Categories(OCCUPATIONS),
}
MORTGAGES = {
    "dir": dpnb.Bounded(0, 3),
    "hir": dpnb.Bounded(0, 3),
    "lvr": dpnb.Bounded(0, 2),
    "ccs": dpnb.Categories([1, 2, 3, 4, 5, 6]),
    "mcs": dpnb.Categories([1, 2, 3, 4]),
    "uria": dpnb.Bounded(0, 20),
    **{name: dpnb.Categories(YES_NO) for name in ("pbcr", "dmi", "self", "single", "comdominiom", "black", "deny")},
}
STOPS = {
    "date": dpnb.Dates("2017-01-01", "2017-12-31"),
    "problem": dpnb.Categories(["suspicious", "traffic"]),
    "race": dpnb.Categories(["Black", "White", "East African", "Latino", "Native American", "Asian", "Other"]),
    "gender": dpnb.Categories(["Female", "Male", "Unknown"]),
    "lat": dpnb.Bounded(44, 46),
    "long": dpnb.Bounded(-94, -93),
    "policePrecinct": dpnb.Categories([1, 2, 3, 4, 5]),
    "neighborhood": dpnb.Text(),
    "personSearch": dpnb.Categories(["NO", "YES"]),
}


def tables(folder: Path) -> dict[str, Any]:
    """The three frames of the habits, by their names in the expressions; their ledgers are in a folder."""
    rng = np.random.default_rng(21)
    persons = np.repeat(np.arange(30), 8)
    wages = {"nr": persons} | _drawn(WAGES, len(persons), rng)
    return {
        "df": _frame(folder / "wages", wages, WAGES, privacy_unit="nr", max_rows_per_unit=8),
        "hm": _frame(folder / "mortgages", _drawn(MORTGAGES, 200, rng), MORTGAGES),
        "sf": _frame(folder / "stops", _drawn(STOPS, 300, rng), STOPS),
    }


def _frame(ledger: Path, rows: dict[str, Any], schema: Any, **unit: Any) -> Any:
    session = dpnb.Session(pd.DataFrame(rows), name=ledger.name, budget=BUDGET, schema=schema, ledger=ledger, **unit)
    return session.frame


def _drawn(schema: dict[str, Any], size: int, rng: np.random.Generator) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for name, column in schema.items():
        match column:
            case dpnb.Bounded(low, high, integer):
                columns[name] = rng.integers(low, high + 1, size) if integer else rng.uniform(low, high, size)
            case dpnb.Categories(values):
                columns[name] = rng.choice(np.array(values, dtype=object), size)
            case dpnb.Dates():
                columns[name] = pd.Timestamp("2017-01-01") + pd.to_timedelta(rng.integers(0, 365 * 24, size), "h")
            case _:
                columns[name] = rng.choice(["Downtown", "Uptown", "Riverside"], size)
    return columns
