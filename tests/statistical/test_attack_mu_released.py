"""One person cannot be told from joins, or from what a session releases, better than is claimed.

As in `test_attack_mu`, where the aggregations are attacked one by one.  A correct program fails a drawn bound with
probability at most 2e-7 each, 1e-6 for the file.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.accounting.losses import GDP
from dpnb.accounting.prefix_sums import square_root_coefficients
from dpnb.mechanisms.gaussian import sigma_for
from statistical.attacks import Floats, Neighbours, neighbours, seen_difference
from statistical.one_person import SCHEMA, seen, table

pytestmark = pytest.mark.statistical

CLAIMED = 1.0

# --- two tables -------------------------------------------------------------------------------------------------------

VISITS = {"x": dpnb.Bounded(-1, 3)}
PAIRS = {"privacy_unit": "u", "max_rows_per_unit": {"visits": 3, "bills": 4}}


def joined(rows: tuple[int, int]) -> Neighbours:
    def both(count: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        others = pd.DataFrame({"u": [1, 1, 2, 3], "x": [0.0, 1.0, 2.0, 3.0]})
        return pd.concat([pd.DataFrame({"u": [99] * count, "x": [3.0] * count}), others], ignore_index=True), others

    tables = {"visits": both(rows[0]), "bills": both(rows[1])}
    schemas = {"visits": VISITS, "bills": VISITS}
    return neighbours(lambda view: view("visits").merge(view("bills"), on="u")["x_x"].mean(), tables, schemas, PAIRS)


def test_many_releases_of_a_join_tell_one_person_no_better_than_claimed_and_nearly_as_well() -> None:
    """False alarm 1e-7; the person has more rows in both tables than count."""
    pair = joined((5, 6))
    assert 0.98 < pair.mu_squared_share <= 1
    bound, _ = seen(pair, sigma_for(pair.query.l2_sensitivity_squared, GDP(CLAIMED)))
    assert CLAIMED / 2 < bound <= CLAIMED


def test_control_a_join_that_counts_rows_of_one_table_only_is_caught() -> None:
    pair = joined((3, 4))
    assert seen(pair, sigma_for(Fraction(pair.query.l2_sensitivity_squared, 4**2), GDP(CLAIMED)))[0] > CLAIMED


# --- the whole way, through a session ---------------------------------------------------------------------------------


def session(rows: pd.DataFrame, **more: Any) -> dpnb.Session:
    return dpnb.Session(
        rows,
        name="attacked",
        schema=SCHEMA,
        budget=dpnb.Budget.gdp(1000),
        ledger=":memory:",
        not_private_test_seed=3,
        **more,
    )


def answers(rows: pd.DataFrame, mu: float, releases: int = 400) -> Floats:
    """The same count under many conditions that hold for every row: each is a question of its own, with fresh noise."""
    frame = session(rows, privacy_unit="u", max_rows_per_unit=4).frame
    questions = (frame[frame["y"] > -1 - k].count() for k in range(releases))
    return np.array([question.release(mu=mu).estimate for question in questions])


def told(mu: float) -> tuple[float, float]:
    """What 400 answers with a person of more than four rows, and 400 without, reveal about that person."""
    tables = table([{}] * 6)
    exact = int(tables[1].groupby("u").size().clip(upper=4).sum())
    there, gone = (answers(rows, mu) - exact for rows in tables)
    return seen_difference(there - 4, gone, 4.0)


def test_released_answers_tell_one_person_no_better_than_their_price() -> None:
    """False alarm 1e-7 for the bound, and 1e-12 for the likely value."""
    bound, likely = told(3)
    assert bound <= 3
    assert likely > 3 / 2


def test_all_looks_at_a_question_together_tell_one_person_no_better_than_the_last_target() -> None:
    """Exactly: a person of four rows moves each look by four, and what the looks tell adds up."""
    rows = session(table([{}] * 6)[0], privacy_unit="u", max_rows_per_unit=4)
    question = rows.frame.count()
    for mu in (0.5, 1, 2, 2, 3):
        question.release(mu=mu)
    scales = [charge.sigma for charge in rows.ledger.charges()]
    told = sum(Fraction(4) ** 2 / Fraction(sigma) ** 2 for sigma in scales if sigma is not None)
    assert sum(sigma is not None for sigma in scales) == 4
    assert 0.999 * 3**2 < told <= 3**2


def test_control_answers_at_a_lower_price_than_their_noise_is_worth_are_caught() -> None:
    """A session that charged mu = 1 for the noise of mu = 3 would claim 1."""
    assert told(3)[0] > 1


# --- cumulative counts ------------------------------------------------------------------------------------------------


@cache
def totals_told(mu: float, releases: int = 400) -> tuple[float, float]:
    """What cumulative counts reveal about a person of more than four rows in the first group.

    The attacker undoes the sums, and looks in the direction in which the person moves what was measured.
    """
    groups = len(SCHEMA["g"].values)
    column = np.array(square_root_coefficients(groups), float) / 2**30
    seen_in_direction = []
    for rows in table([{}] * 6):
        frame = session(rows, privacy_unit="u", max_rows_per_unit=4).frame
        questions = [frame[frame["y"] > -1 - k].groupby("g").size().cumsum() for k in range(releases)]
        counts = [np.diff(question.release(mu=mu).estimate, prepend=0) for question in questions]
        measured = np.array([np.convolve(column, count)[:groups] for count in counts])
        seen_in_direction.append(measured @ column / np.linalg.norm(column))
    there, gone = seen_in_direction
    moved, others = 4 * np.linalg.norm(column), np.mean(gone)
    return seen_difference(there - others - moved, gone - others, float(moved))


def test_totals_tell_one_person_no_better_than_their_price() -> None:
    """False alarm 1e-7 for the bound, and 1e-12 for the likely value."""
    bound, likely = totals_told(3)
    assert bound <= 3
    assert likely > 3 / 2


def test_control_totals_at_a_lower_price_than_their_noise_is_worth_are_caught() -> None:
    assert totals_told(3)[0] > 1
