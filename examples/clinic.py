"""Write a synthetic table of stays in a clinic, and a ledger of six queries under individual accounting.

``python clinic.py`` writes ``clinic.csv`` and ``clinic.dpnb`` beside this file, for the how-to guides on the curator's
commands.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

import dpnb

PERSONS, WARDS = 2000, ["surgery", "cardiology", "paediatrics", "oncology"]
TABLE, DECLARATION = Path(__file__).with_name("clinic.csv"), Path(__file__).with_name("clinic.toml")


def stays() -> pd.DataFrame:
    """Stays of 2,000 invented persons, up to five for each."""
    rng = np.random.default_rng(1)  # safe: the persons are invented
    person = np.repeat(np.arange(1, PERSONS + 1), rng.integers(1, 6, PERSONS))
    ward = rng.choice(WARDS, len(person))
    return pd.DataFrame({"person": person, "ward": ward, "nights": rng.integers(0, 15, len(person))})


def main() -> None:
    """Write the table, open the session that the declaration states, and release six queries."""
    stays().to_csv(TABLE, index=False)
    session = dpnb.Session.from_toml(DECLARATION, pd.read_csv(TABLE))
    clinic = session.frame
    for ward in WARDS:
        clinic[clinic["ward"] == ward].count_units().release(mu=0.1)
    clinic["nights"].sum().release(mu=0.1)
    clinic.count_units().release(mu=0.2)


if __name__ == "__main__":
    main()
