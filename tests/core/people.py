"""A small table, questions about it, and by hand what each costs a person: for the tests of statements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd

import dpnb

MU0 = Fraction(1, 2)
MODES = ("skip", "drop", "clip")
TOWNS = ("north", "south")
Row = tuple[int, str]

TABLE = pd.DataFrame(
    [
        (f"p{person}", visits, TOWNS[town])
        for person, rows in enumerate(
            [
                [(10, 0), (9, 0)],
                [(10, 0)],
                [(0, 1)],
                [(5, 0), (6, 1)],
                [(10, 1), (10, 1)],
                [(1, 0), (0, 1)],
            ]
        )
        for visits, town in rows
    ],
    columns=["person", "visits", "town"],
)

ARGUMENTS: dict[str, Any] = {
    "name": "clinic",
    "privacy_unit": "person",
    "max_rows_per_unit": 2,
    "budget": dpnb.Budget.gdp(MU0),
    "schema": {"visits": dpnb.Bounded(0, 10), "town": dpnb.Categories(list(TOWNS))},
    "accounting": "individual",
}


def of(person: str, table: pd.DataFrame = TABLE) -> list[Row]:
    return [(visits, town) for who, visits, town in table.itertuples(index=False) if who == person]


@dataclass(frozen=True)
class Asked:
    """A question.

    Parameters
    ----------
    ask : callable
        From a session's frame.
    squared : callable
        From a person's rows the square of the norm of what they add.
    worst : int
        The most that can be.
    mu : Fraction
    """

    ask: Callable[[Any], Any]
    squared: Callable[[list[Row]], int]
    worst: int
    mu: Fraction

    def cost(self, rows: list[Row]) -> Fraction:
        return self.mu**2 * Fraction(self.squared(rows), self.worst)


def in_towns(rows: list[Row]) -> int:
    return sum(sum(town == one for _, town in rows) ** 2 for one in TOWNS)


QUESTIONS = [
    Asked(lambda frame: frame.count(), lambda rows: len(rows) ** 2, 4, Fraction(1, 10)),
    Asked(lambda frame: frame["visits"].sum(), lambda rows: sum(v for v, _ in rows) ** 2, 400, Fraction(3, 10)),
    Asked(lambda frame: frame.groupby("town").count(), in_towns, 4, Fraction(1, 5)),
    Asked(
        lambda frame: frame[frame["town"] == "north"]["visits"].sum(),
        lambda rows: sum(v for v, town in rows if town == "north") ** 2,
        400,
        Fraction(2, 5),
    ),
    Asked(
        lambda frame: frame[frame["visits"] >= 9].count(),
        lambda rows: sum(v >= 9 for v, _ in rows) ** 2,
        4,
        Fraction(3, 10),
    ),
    Asked(
        lambda frame: frame[frame["visits"] >= 1].count_units(),
        lambda rows: any(v >= 1 for v, _ in rows),
        1,
        Fraction(1, 5),
    ),
]


def ask_all(session: dpnb.Session) -> None:
    for question in QUESTIONS:
        question.ask(session.frame).release(mu=question.mu)


def paid_by_hand(rows: list[Row], mode: str, before: Fraction = Fraction(0)) -> list[tuple[Fraction, Fraction, str]]:
    """For each question what taking part in full costs, what is charged, and how the person takes part."""
    spent, out, lines = before, False, []
    for question in QUESTIONS:
        asked = question.cost(rows)
        left = max(MU0**2 - spent, Fraction(0))
        if not asked:
            paid, took = Fraction(0), "not affected"
        elif asked <= left and not out:
            paid, took = asked, "in full"
        elif mode == "clip" and left:
            paid, took = left, "in part"
        else:
            paid, took, out = Fraction(0), "excluded", mode == "drop"
        spent += paid
        lines.append((asked, paid, took))
    return lines


def curator(folder: Path, mode: str, table: pd.DataFrame = TABLE, **changes: Any) -> tuple[dpnb.Session, Path, Path]:
    """A session, its ledger and the table's file."""
    file, ledger = folder / "table.csv", folder / "clinic.dpnb"
    table.to_csv(file, index=False)
    session = dpnb.Session(pd.read_csv(file), **{**ARGUMENTS, "on_exhausted": mode, "ledger": ledger, **changes})
    return session, ledger, file
