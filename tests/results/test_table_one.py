"""A table one has what pandas computes, in one charge, and says "unknown" where the noise decides nothing."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.errors import NotReleasedError, PlanError, RequestError
from dpnb.ledger import MEMORY
from dpnb.render.tables import latex_text
from dpnb.results.table_one import TableOne

SIZE = 900
SCHEMA = {
    "arm": dpnb.Categories(["control", "treated", "later"]),
    "age": dpnb.Bounded(0, 100),
    "cost": dpnb.Bounded(0, 40, integer=True),
    "stage": dpnb.Categories(["a", "b", "c"]),
    "note": dpnb.Text(),
}
COLUMNS = ["age", "cost", "stage", "old"]


def made() -> pd.DataFrame:
    chance = np.random.default_rng(3)
    age = chance.uniform(20, 90, SIZE)
    return pd.DataFrame(
        {
            "arm": chance.choice(["control", "treated", "later"], SIZE, p=[0.5, 0.3, 0.2]),
            "age": np.where(chance.random(SIZE) < 0.1, np.nan, age),
            "cost": chance.integers(0, 40, SIZE),
            "stage": chance.choice(["a", "b", "c", "undeclared"], SIZE),
            "note": "x",
        }
    )


T = made()


def opened(**changes: Any) -> dpnb.Session:
    arguments: dict[str, Any] = {
        "name": "study", "budget": dpnb.Budget.gdp(1e7), "schema": SCHEMA, "ledger": MEMORY, "not_private_test_seed": 5,
    }  # fmt: skip
    return dpnb.Session(**{"table": T, **arguments, **changes})


def asked(session: dpnb.Session, **options: Any) -> Any:
    frame = session.frame
    frame["old"] = frame["age"] > 60
    return frame.table_one(by="arm", columns=COLUMNS, **{"numbers": {"cost": "median"}, **options})


@pytest.fixture(scope="module")
def exact() -> TableOne:
    """With next to no noise."""
    return asked(opened()).release(mu=1e5)


def test_it_has_what_pandas_computes(exact: TableOne) -> None:
    found = exact.to_frame()
    for arm, rows in T.groupby("arm"):
        column = found[arm, "estimate"]
        assert column["", "n"] == pytest.approx(len(rows), abs=0.01)
        assert column["age"].tolist() == pytest.approx([rows["age"].mean(), rows["age"].std()], rel=1e-3)
        assert column["cost", "50%"] == pytest.approx(rows["cost"].median(), abs=1)
        shares = rows["stage"][rows["stage"] != "undeclared"].value_counts(normalize=True)
        assert column["stage"].to_dict() == pytest.approx(shares.to_dict(), abs=1e-3)
        known = rows["age"].dropna()
        assert column["old", "True"] == pytest.approx((known > 60).mean(), abs=1e-3)


def test_differences_are_those_of_the_groups_of_the_answer(exact: TableOne) -> None:
    for name in ("age: mean", "stage: b", "cost: 50%"):
        by_hand = exact["treated"][name] - exact["control"][name]
        own = exact.difference("treated")[name]
        assert (own.interval, own.population_interval) == (by_hand.interval, by_hand.population_interval)
        row = exact.to_frame()["treated - control"].loc[tuple(name.split(": "))]
        assert (row["population_low"], row["population_high"]) == own.population_interval
    one, other = (T[T["arm"] == arm]["age"] for arm in ("treated", "control"))
    low, high = exact.difference("treated")["age: mean"].population_interval
    reach = 2.05 * math.hypot(*(part.std() / part.count() ** 0.5 for part in (one, other)))  # first of two intervals
    assert (high - low) / 2 == pytest.approx(reach, rel=0.05)


def test_a_group_that_there_is_not_is_refused(exact: TableOne) -> None:
    for method in (exact.difference, exact.standardized):
        for group in ("placebo", ["treated"], None):
            with pytest.raises(RequestError, match="it has 'control', 'treated', 'later'"):
                method(group)


def test_a_copy_shows_the_same(exact: TableOne) -> None:
    copied = pickle.loads(pickle.dumps(exact))
    assert (str(copied), copied.to_latex()) == (str(exact), exact.to_latex())
    assert "not released" not in str(exact)


def test_deviations_have_population_intervals_once_they_are_measured() -> None:
    table = asked(opened()).release(mu=1e3).population(mu=1e3)
    assert type(table) is TableOne
    assert (
        table.to_frame()["treated - control"].loc[("age", "std"), ["population_low", "population_high"]].notna().all()
    )


def test_standardized_differences_are_in_pooled_deviations(exact: TableOne) -> None:
    one, other = (T[T["arm"] == arm]["age"] for arm in ("treated", "control"))
    wanted = (one.mean() - other.mean()) / math.sqrt((one.var() + other.var()) / 2)
    found = exact.to_frame()["treated - control"]["smd"]
    assert found["age", "mean"] == pytest.approx(wanted, abs=2e-3)
    assert found[[("", "n"), ("age", "std"), ("cost", "50%")]].isna().all()


def test_it_is_one_charge_and_free_again_in_a_later_session(tmp_path: Path) -> None:
    first = opened(ledger=tmp_path / "ledger")
    query = asked(first)
    assert query.preview(mu=0.5).cost.mu == 0.5
    table = query.release(mu=0.5)
    assert table.cost.mu == 0.5
    assert len(first.log) == 1
    later = opened(ledger=tmp_path / "ledger")
    again = asked(later).release(mu=0.5)
    other = asked(later, reference="later").release(mu=0.5)
    assert type(again) is TableOne
    assert (str(again), again.to_latex()) == (str(table), table.to_latex())
    assert (other.cost.mu, other.reference) == (0, "later")
    pd.testing.assert_frame_equal(other.to_frame().iloc[:, :3], table.to_frame().iloc[:, :3])


@pytest.mark.parametrize("mu", [1e-6, 0.003, 0.05])
def test_cells_that_are_lost_in_the_noise_are_unknown(mu: float) -> None:
    table = asked(opened()).release(mu=mu)
    shown = [str(table), table.to_html(), table.to_markdown(), table.to_latex()]
    assert all("unknown" in text for text in shown)
    assert not any("nan" in text.replace("unknown", "") for text in shown)
    assert table.to_frame()["treated - control"]["smd"].isna().any()


def test_a_deviation_that_the_noise_may_have_made_is_unknown_and_standardizes_nothing() -> None:
    table = asked(opened()).release(mu=0.3)
    found, lows = table.to_frame(), table["age: std"].to_pandas()["low"]
    assert lows.gt(0).tolist() == [True, True, False]
    assert not table["age: std"].estimate.isna().any()
    assert [math.isnan(found.loc[("age", "std"), (arm, "estimate")]) for arm in SCHEMA["arm"].values] == [
        False, False, True
    ]  # fmt: skip
    assert [math.isnan(table.standardized(arm)[1]) for arm in ("treated", "later")] == [False, True]
    assert math.isnan(found.loc[("age", "std"), ("later - control", "difference")])
    assert "50.1 (unknown)" in str(table)


def test_a_condition_has_one_row(exact: TableOne) -> None:
    assert [label for label in exact.to_frame().index if label[0] == "old"] == [("old", "True")]
    assert "False" not in str(exact)


def test_names_are_escaped() -> None:
    table = pd.DataFrame({"<g>": ["a&b", "c|d"] * 50, "x_1 $%": np.linspace(0, 9, 100)})
    schema = {"<g>": dpnb.Categories(["a&b", "c|d"]), "x_1 $%": dpnb.Bounded(0, 9)}
    found = opened(table=table, schema=schema).frame.table_one(by="<g>").release(mu=100)
    assert r"x\_1 \$\%, mean (sd) & " in found.to_latex()
    assert r"\textless{}g\textgreater{} & a\&b & c\textbar{}d & " in found.to_latex()
    assert r"| \<g\> | a&b | c\|d |" in found.to_markdown()
    assert "&lt;g&gt;" in found.to_html()
    assert "<g>" not in found.to_html()
    assert latex_text("[\\~^\n") == r"{[}\textbackslash{}\textasciitilde{}\textasciicircum{} "


def test_without_groups_it_is_one_column() -> None:
    table = opened().frame.table_one(columns=["age", "stage"]).release(mu=1e5)
    assert (table.reference, table.differences) == (None, {})
    assert table.to_frame().columns.tolist() == [("all", "estimate")]
    assert table.to_frame()["all", "estimate"]["age", "mean"] == pytest.approx(T["age"].mean(), rel=1e-3)
    assert table.to_markdown().splitlines()[0] == "|  | all |"


def test_in_a_census_the_intervals_are_those_of_the_noise() -> None:
    table = asked(opened(sampled="census")).release(mu=1)
    found = table.to_frame()["treated - control"]
    assert found["low"].tolist() == found["population_low"].tolist()


def test_a_person_must_have_one_row() -> None:
    people = opened(table=T.assign(person=np.arange(SIZE) // 3), privacy_unit="person", max_rows_per_unit=3).frame
    with pytest.raises(PlanError, match=r"df\.drop_duplicates\('person'\)\.table_one"):
        people.table_one(by="arm")
    table = people.drop_duplicates("person").table_one(by="arm", columns=["stage"]).release(mu=1e5)
    assert table.estimate["n"].sum() == pytest.approx(SIZE / 3, abs=0.1)
    assert table.has_population_intervals
    once = people.bound_contributions(max_rows_per_unit=1).table_one(by="arm", columns=["stage"])
    assert once.release(mu=1e5).difference("treated").has_population_intervals


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "text": ({"columns": ["note"]}, "'note' is .* text"),
    "unknown column": ({"columns": ["ages"]}, "did you mean 'age'"),
    "no list": ({"columns": "age"}, "must be a list of names"),
    "twice": ({"columns": ["age", "age"]}, "each column once"),
    "the groups": ({"columns": ["arm"]}, "besides by="),
    "numbers": ({"numbers": "mode"}, "'mean' or 'median'"),
    "numbers of nothing": ({"columns": ["age"], "numbers": {"cost": "mean"}}, "'cost', which is not described"),
    "reference": ({"reference": "placebo"}, "the groups are 'control', 'treated', 'later'"),
    "reference without groups": ({"by": None, "reference": "control"}, "without by="),
    "two levels": ({"by": ["arm", "stage"]}, "must be one column"),
    "groups of texts": ({"by": "note"}, "the set of texts is private"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_described_is_refused_before_a_charge(case: str) -> None:
    options, message = REFUSED[case]
    session = opened()
    with pytest.raises(PlanError, match=message):
        session.frame.table_one(**{"by": "arm", **options})
    assert len(session.log) == 0


def test_in_a_batch_it_is_refused_since_its_groups_would_share_noise() -> None:
    session = opened()
    with pytest.raises(PlanError, match="release it alone"):
        session.plan([asked(session), session.frame.groupby("arm").size()])


def test_a_query_is_not_yet_a_table() -> None:
    with pytest.raises(NotReleasedError, match=r"\.release"):
        asked(opened()).to_latex()
