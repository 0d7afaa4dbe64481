"""What a table of rows per unit costs and says, beside the same question about rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.errors import PlanError, SchemaWarning, UnsupportedError

ROWS = 5
SCHEMA = {
    "visits": dpnb.Bounded(0, 20, integer=True),
    "year": dpnb.Bounded(1, ROWS, integer=True),
    "plan": dpnb.Categories(["free", "paid"]),
}
TABLE = pd.DataFrame(
    {
        "person": np.repeat(np.arange(200), ROWS),
        "visits": np.tile([0, 1, 0, 3, 2], 200),
        "year": np.tile(np.arange(1, ROWS + 1), 200),
        "plan": np.repeat(["free", "paid"], 100 * ROWS),
    }
)


@pytest.fixture
def session() -> dpnb.Session:
    return dpnb.Session(
        TABLE,
        name="panel",
        schema=SCHEMA,
        privacy_unit="person",
        max_rows_per_unit=ROWS,
        public_size=200,
        budget=dpnb.Budget.gdp(1e4),
        ledger=":memory:",
        not_private_test_seed=1,
    )


def test_a_sum_per_person_has_the_noise_of_the_sum_of_rows(session: dpnb.Session) -> None:
    df = session.frame
    rows, persons = df["visits"].sum().release(mu=1), df.groupby("person")["visits"].sum().sum().release(mu=1)
    assert persons.noise_scale == pytest.approx(rows.noise_scale, rel=1e-6)


def test_the_bounds_are_explained(session: dpnb.Session) -> None:
    explained = str(session.frame.groupby("person")["visits"].sum().mean().explain())
    assert "visits_sum to 0 ... 100" in explained
    assert "at most 5 rows of one person count" in " ".join(explained.split())


def test_a_public_number_of_units_is_that_of_the_rows(session: dpnb.Session) -> None:
    per_person = session.frame.groupby("person")["visits"].max()
    assert "public_size=200" in str(per_person.mean().preview(mu=0.1))
    some = session.frame[session.frame["year"] > 1].groupby("person")["visits"].max()
    assert "every unit has a row" in str(some.mean().preview(mu=0.1))
    with pytest.raises(dpnb.errors.DpnbError, match="assum"):
        some.mean().release(within=0.1)


def test_the_parts_of_a_table_of_persons_are_queried_apart(session: dpnb.Session) -> None:
    people = session.frame.sort_values("year").groupby("person").agg(plan=("plan", "first"), n=("visits", "sum"))
    plans = session.partition(people["plan"])
    for plan in plans:
        assert plans[plan].frame["n"].mean().release(mu=50).estimate == pytest.approx(6, abs=0.1)


def test_fixed_effects_are_those_of_deviations(session: dpnb.Session) -> None:
    answer = session.frame.regress("visits ~ year | person").release(mu=1000)
    within = TABLE[["visits", "year"]] - TABLE.groupby("person")[["visits", "year"]].transform("mean")
    slope = float(np.linalg.lstsq(within[["year"]], within["visits"], rcond=None)[0][0])
    assert float(answer.to_pandas()["estimate"].iloc[0]) == pytest.approx(slope, abs=0.01)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda df: df.groupby("person")["visits"].shift(1), "sort_values"),
        (lambda df: df.groupby("person").head(1), "sort_values"),
        (lambda df: df["visits"].shift(1), r"groupby\('person'\)\['\w+'\]\.shift\(1\)"),
        (lambda df: df.drop_duplicates("plan"), r"drop_duplicates\('person'\)"),
        (lambda df: df.sort_values("year").groupby("person")["visits"].pct_change(), "can be 0"),
        (lambda df: df.regress("visits ~ year | plan"), r"\| person"),
        (lambda df: df.groupby("person")["visits"].agg("mode"), "'mean'"),
        (lambda df: df.groupby("person", keys=[1]), "private"),
        (lambda df: df.groupby("person")["visits"].rank(pct=True), "pct=True is not offered"),
        (lambda df: df.sort_values("year").groupby("person")["visits"].shift(1, fill_value=0), "fill"),
        (lambda df: df.sort_values("year").groupby("person")["visits"].rolling(3, center=True), "center"),
        (lambda df: df.sort_values("year").groupby("person")["visits"].ffill(limit=1), "limit"),
    ],
)
def test_a_refusal_names_what_works(ask: Any, words: str, session: dpnb.Session) -> None:
    with pytest.raises((PlanError, UnsupportedError), match=words):
        ask(session.frame)


def test_a_forgotten_privacy_unit_is_noticed() -> None:
    with pytest.warns(SchemaWarning, match=r"one row.*'patient_id'.*privacy_unit='patient_id'"):
        dpnb.Session(
            pd.DataFrame({"patient_id": [1, 1], "x": [0.5, 1]}),
            name="forgotten",
            schema={"patient_id": dpnb.Bounded(0, 9), "x": dpnb.Bounded(0, 1)},
            budget=dpnb.Budget.gdp(1),
            ledger=":memory:",
        )
