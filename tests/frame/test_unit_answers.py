"""With next to no noise every computation within a privacy unit gives what pandas gives of the same rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.errors import PlanError, UnsupportedError
from frame.test_frame_answers import MU, close, least_squares

MOST = 8
ARMS = ["free", "half", "never"]
SCHEMA = {
    "year": dpnb.Bounded(2000, 2010, integer=True),
    "turn": dpnb.Bounded(0, MOST, integer=True),
    "x": dpnb.Bounded(0, 30),
    "wage": dpnb.Bounded(1, 20),
    "g": dpnb.Categories(["a", "b", "c", "never"]),
    "k": dpnb.Categories([0, 25, 95]),
    "arm": dpnb.Categories(ARMS),
    "d": dpnb.Dates("2020-01-01", "2021-12-31"),
}


def made(seed: int = 3, persons: int = 90) -> pd.DataFrame:
    """Persons with one to eight rows, some without a value or, in one row, a year, and several in one year."""
    chance = np.random.default_rng(seed)
    sizes = np.r_[np.ones(15, int), chance.integers(1, MOST + 1, persons - 15)]
    person = np.repeat(np.arange(persons), sizes)
    rows = len(person)
    x = chance.poisson(4, rows).astype(float)
    table = pd.DataFrame(
        {
            "p": person,
            "year": chance.integers(2000, 2004, rows).astype(float),
            "turn": np.concatenate([chance.permutation(size) for size in sizes]),
            "x": np.where(chance.random(rows) < 0.2, np.nan, x),
            "wage": np.where(chance.random(rows) < 0.1, np.nan, chance.uniform(1, 20, rows).round(2)),
            "g": pd.Series(chance.choice(["a", "b", "c"], rows)).where(chance.random(rows) > 0.1, None),
            "k": chance.choice([0, 25, 95], rows),
            "arm": np.array(ARMS)[person % 2],
            "d": pd.Timestamp("2020-01-01") + pd.to_timedelta(chance.integers(0, 700, rows), unit="D"),
        }
    )
    table.loc[(table["turn"] == 0) & (chance.random(rows) < 0.3), "year"] = np.nan
    table.loc[table["p"] == 5, ["x", "wage"]] = np.nan
    return table.sample(frac=1, random_state=1).reset_index(drop=True)


T = made()
PLACES = pd.DataFrame({"arm": ["free", "half"], "zone": ["north", "south"], "price": [1.0, 5.0]})
HOMES = pd.DataFrame({"p": np.arange(0, 120), "size": np.arange(120) % 7 + 1.0})
BY_P = T.groupby("p")
X = T.groupby("p").x
ORDER = ["year", "turn"]
IN_ORDER = T.dropna(subset=["year"]).sort_values(ORDER)
"""Rows without a year are in no other row's value."""
NUMBERED = T.sort_values(ORDER)
BACKWARDS = T.sort_values(ORDER, na_position="first")
"""They are the last ones, from either end."""

ordered = IN_ORDER.groupby("p")
DOWN = T.dropna(subset=["year"]).sort_values(ORDER, ascending=[False, True])
LATE = IN_ORDER[IN_ORDER.year > 2000]
BOTH = T.dropna(subset=["x", "wage"])
SOME = T[T.x > 2]
PEOPLE = BY_P.agg(total=("x", "sum"), top=("wage", "max"), n=("x", "size"), seen=("x", "count")).join(BY_P.arm.max())
PER_KEY = T.groupby(["p", "k"]).agg(total=("x", "sum"), n=("x", "size")).reset_index()


def opened(table: pd.DataFrame = T, **changes: Any) -> dpnb.Session:
    arguments: dict[str, Any] = {
        "name": "panel",
        "budget": dpnb.Budget.gdp(1e8),
        "schema": SCHEMA,
        "privacy_unit": "p",
        "max_rows_per_unit": MOST,
        "ledger": ":memory:",
        "not_private_test_seed": 5,
    }
    return dpnb.Session(table, **{**arguments, **changes})


@pytest.fixture(scope="module")
def panel() -> dpnb.Session:
    return opened()


Case = tuple[Callable[[Any], Any], Any]


def by(frame: Any) -> Any:
    return frame.groupby("p")


def rows(frame: Any) -> Any:
    """The rows of each person in their order."""
    return frame.sort_values(ORDER).groupby("p")


def people(frame: Any) -> Any:
    return (
        frame.sort_values("turn")
        .groupby("p")
        .agg(total=("x", "sum"), top=("wage", "max"), n=("x", "size"), seen=("x", "count"), arm=("arm", "first"))
    )


def counted(values: pd.Series, among: Any) -> list[int]:
    return list(values.value_counts().reindex(among, fill_value=0))


def within_person(table: pd.DataFrame, *names: str) -> list[float]:
    """The slopes of the first column on the others, each less its person's mean."""
    table = table.dropna(subset=list(names))
    moved = table[list(names)] - table.groupby("p")[list(names)].transform("mean")
    return list(np.linalg.lstsq(moved.to_numpy()[:, 1:], moved.to_numpy()[:, 0], rcond=None)[0])


ONE_VALUE: dict[str, Case] = {
    "sum": (lambda f: by(f)["x"].sum().mean(), X.sum().mean()),
    "mean": (lambda f: by(f)["x"].mean().mean(), X.mean().mean()),
    "min": (lambda f: by(f)["x"].min().mean(), X.min().mean()),
    "max": (lambda f: by(f)["wage"].max().mean(), BY_P.wage.max().mean()),
    "count": (lambda f: by(f)["x"].count().mean(), X.count().mean()),
    "size": (lambda f: by(f).size().mean(), BY_P.size().mean()),
    "size of a column": (lambda f: by(f)["x"].size().value_counts(), counted(X.size(), range(MOST + 1))),
    "nunique": (lambda f: by(f)["g"].nunique().value_counts(), counted(BY_P.g.nunique(), range(MOST + 1))),
    "nunique of numbers": (lambda f: by(f)["x"].nunique().mean(), X.nunique().mean()),
    "nunique of dates": (lambda f: by(f)["d"].nunique().mean(), BY_P.d.nunique().mean()),
    "any": (lambda f: by(f.assign(q=f["x"] > 6))["q"].any().mean(), (T.x > 6).groupby(T.p).any().mean()),
    "all": (lambda f: by(f.assign(q=f["k"] != 0))["q"].all().mean(), (T.k != 0).groupby(T.p).all().mean()),
    "share above": (lambda f: (by(f)["x"].sum() > 10).mean(), (X.sum() > 10).mean()),
    "agg by name": (lambda f: by(f)["x"].agg("max").mean(), X.max().mean()),
    "a function of numpy": (lambda f: by(f)["x"].agg(np.sum).mean(), X.sum().mean()),
    "median": (lambda f: by(f)["x"].sum().median(), np.quantile(X.sum(), 0.5, method="inverted_cdf")),
    "histogram": (lambda f: by(f)["x"].sum().histogram([0, 5, 20, 240]), np.histogram(X.sum(), [0, 5, 20, 240])[0]),
    "two columns": (
        lambda f: (by(f)["x"].sum() / by(f).size().clip(1, None)).mean(),
        (X.sum() / BY_P.size()).mean(),
    ),
    "date": (
        lambda f: (by(f)["d"].max() - pd.Timestamp("2020-06-01")).dt.days.mean(),
        (BY_P.d.max() - pd.Timestamp("2020-06-01")).dt.days.mean(),
    ),
    "months of a date": (lambda f: by(f)["d"].min().dt.month.mean(), BY_P.d.min().dt.month.mean()),
    "computed": (lambda f: by(f.assign(z=f["x"] * 2 + f["wage"]))["z"].sum().mean(), None),
    "filtered before": (lambda f: by(f[f["x"] > 2])["wage"].sum().mean(), SOME.groupby("p").wage.sum().mean()),
    "units after a filter": (lambda f: by(f[f["x"] > 6]).size().count(), T[T.x > 6].p.nunique()),
}
ONE_VALUE["computed"] = (ONE_VALUE["computed"][0], (T.x * 2 + T.wage).groupby(T.p).sum().mean())

TABLES: dict[str, Case] = {
    "one row per person": (lambda f: people(f).count(), T.p.nunique()),
    "filtered after": (lambda f: people(f).query("n > 3")["total"].mean(), PEOPLE[PEOPLE.n > 3].total.mean()),
    "groups": (
        lambda f: people(f).groupby("arm")["total"].mean(),
        [*PEOPLE.groupby("arm").total.mean(), np.nan],
    ),
    "groups by number": (
        lambda f: people(f)[people(f)["n"] > 0].groupby("n")["top"].count(),
        [0, *PEOPLE.groupby("n").top.count()],
    ),
    "groups by condition": (
        lambda f: people(f).groupby(people(f)["total"] > 10)["n"].mean(),
        PEOPLE.groupby(PEOPLE.total > 10).n.mean(),
    ),
    "quantiles": (
        lambda f: people(f)["n"].quantile([0.1, 0.5, 0.9]),
        np.quantile(PEOPLE.n, [0.1, 0.5, 0.9], method="inverted_cdf"),
    ),
    "crosstab": (
        lambda f: dpnb.crosstab(people(f)["arm"], people(f)["n"] > 3),
        [*pd.crosstab(PEOPLE.arm, PEOPLE.n > 3).to_numpy().ravel(), 0, 0],
    ),
    "regression": (lambda f: people(f).regress("total ~ n"), least_squares(PEOPLE.total, PEOPLE.n)),
    "regression on a category": (
        lambda f: people(f).regress("total ~ n + seen"),
        least_squares(PEOPLE.total, PEOPLE.n, PEOPLE.seen),
    ),
    "standard deviation": (lambda f: people(f)["total"].std(), PEOPLE.total.std()),
    "correlation": (lambda f: people(f)["total"].corr(people(f)["n"]), PEOPLE.total.corr(PEOPLE.n)),
    "several": (
        lambda f: people(f).groupby("arm", keys=["free", "half"]).agg(m=("total", "mean"), n="count"),
        PEOPLE.groupby("arm").agg(m=("total", "mean"), n=("n", "size")),
    ),
    "agg of a dict": (lambda f: by(f).agg({"x": ["sum", "max"]})["x_sum"].mean(), X.sum().mean()),
    "agg of a list": (lambda f: by(f)["x"].agg(["sum", "max"])["max"].mean(), X.max().mean()),
    "every column": (lambda f: by(f).sum()["wage"].mean(), BY_P.wage.sum().mean()),
    "selected columns": (lambda f: by(f)[["x", "wage"]].max()["wage"].mean(), BY_P.wage.max().mean()),
    "assigned": (
        lambda f: people(f).assign(z=lambda t: t.total / t.n.clip(1)).z.mean(),
        (PEOPLE.total / PEOPLE.n).mean(),
    ),
    "per person and key": (lambda f: f.groupby(["p", "k"]).agg(t=("x", "sum"))["t"].mean(), PER_KEY.total.mean()),
    "keys stay columns": (
        lambda f: f.groupby(["p", "k"]).agg(t=("x", "sum")).groupby("k")["t"].mean(),
        PER_KEY.groupby("k").total.mean(),
    ),
    "number of pairs": (lambda f: f.groupby(["p", "k"]).size().count(), len(PER_KEY)),
    "per person and condition": (
        lambda f: f.assign(q=f["x"] > 3).groupby(["p", "q"]).agg(n="size").count(),
        len(BOTH_Q := T.dropna(subset=["x"]).assign(q=T.x > 3).drop_duplicates(["p", "q"])),
    ),
    "per person and year": (
        lambda f: f.groupby(["p", "year"]).agg(t=("x", "sum"))["t"].mean(),
        T.groupby(["p", "year"]).x.sum().mean(),
    ),
    "per person of per person and key": (
        lambda f: f.groupby(["p", "k"]).agg(t=("x", "sum")).groupby("p")["t"].max().mean(),
        PER_KEY.groupby("p").total.max().mean(),
    ),
    "per person of a window": (
        lambda f: by(f.sort_values(ORDER).assign(v=rows(f)["x"].diff()))["v"].max().mean(),
        IN_ORDER.assign(v=ordered.x.diff()).groupby("p").v.max().mean(),
    ),
    "window in a table per key": (
        lambda f: f.groupby(["p", "k"]).agg(t=("x", "sum")).sort_values("k").groupby("p")["t"].shift(1).mean(),
        PER_KEY.sort_values("k").groupby("p").total.shift(1).mean(),
    ),
    "public table": (
        lambda f: people(f).merge(PLACES, on="arm").groupby("zone")["total"].sum(),
        PEOPLE.merge(PLACES, on="arm").groupby("zone").total.sum(),
    ),
}

ROWS: dict[str, Case] = {
    "shift": (lambda f: rows(f)["x"].shift(1).mean(), ordered.x.shift(1).mean()),
    "shift by two": (lambda f: rows(f)["x"].shift(2).sum(), ordered.x.shift(2).sum()),
    "shift back": (lambda f: rows(f)["x"].shift(-1).mean(), ordered.x.shift(-1).mean()),
    "shift of nothing": (lambda f: rows(f)["x"].shift(0).mean(), IN_ORDER.x.mean()),
    "shift of a category": (
        lambda f: rows(f)["g"].shift(1).value_counts(),
        counted(ordered.g.shift(1), ["a", "b", "c", "never"]),
    ),
    "shift of a condition": (
        lambda f: rows(f.assign(q=f["k"] == 25))["q"].shift(1).sum(),
        (IN_ORDER.k == 25).groupby(IN_ORDER.p).shift(1).sum(),
    ),
    "diff": (lambda f: rows(f)["x"].diff().var(), ordered.x.diff().var()),
    "diff of dates": (lambda f: rows(f)["d"].diff().dt.days.mean(), ordered.d.diff().dt.days.mean()),
    "relative change": (
        lambda f: rows(f)["wage"].pct_change().mean(),
        ordered.wage.pct_change(fill_method=None).mean(),
    ),
    "cumsum": (lambda f: rows(f)["x"].cumsum().mean(), ordered.x.cumsum().mean()),
    "cumcount": (
        lambda f: rows(f)["x"].cumcount().value_counts(),
        counted(NUMBERED.groupby("p").cumcount(), range(MOST)),
    ),
    "cumcount of rows": (lambda f: (rows(f).cumcount() > 1).sum(), (NUMBERED.groupby("p").cumcount() > 1).sum()),
    "cummax": (lambda f: rows(f)["x"].cummax().mean(), ordered.x.cummax().mean()),
    "cummin": (lambda f: rows(f)["x"].cummin().mean(), ordered.x.cummin().mean()),
    "rank": (lambda f: (by(f)["x"].rank() ** 2).mean(), (X.rank() ** 2).mean()),
    "rank of dates": (lambda f: (by(f)["d"].rank() ** 2).mean(), (BY_P.d.rank() ** 2).mean()),
    "rolling mean": (lambda f: rows(f)["x"].rolling(2).mean().mean(), ordered.x.rolling(2).mean().mean()),
    "rolling sum": (
        lambda f: rows(f)["x"].rolling(3, min_periods=1).sum().mean(),
        ordered.x.rolling(3, min_periods=1).sum().mean(),
    ),
    "rolling over more rows than there are": (
        lambda f: rows(f)["x"].rolling(50, min_periods=2).mean().mean(),
        ordered.x.rolling(50, min_periods=2).mean().mean(),
    ),
    "ffill": (lambda f: rows(f)["x"].ffill().mean(), ordered.x.ffill().mean()),
    "ffill of a category": (
        lambda f: rows(f)["g"].ffill().value_counts(),
        counted(ordered.g.ffill(), ["a", "b", "c", "never"]),
    ),
    "transform": (lambda f: (f["x"] - by(f)["x"].transform("mean")).var(), (T.x - X.transform("mean")).var()),
    "transform by a method": (lambda f: rows(f)["x"].transform("cumsum").mean(), ordered.x.cumsum().mean()),
    "transform per key": (
        lambda f: (f["x"] - f.groupby(["p", "k"])["x"].transform("max")).mean(),
        (T.x - T.groupby(["p", "k"]).x.transform("max")).mean(),
    ),
    "first": (lambda f: rows(f)["x"].first().mean(), ordered.x.first().mean()),
    "last": (lambda f: rows(f)["g"].last().value_counts(), counted(ordered.g.last(), ["a", "b", "c", "never"])),
    "nth": (lambda f: rows(f)["x"].nth(1).mean(), ordered.x.nth(1).mean()),
    "nth from the end": (lambda f: rows(f)["x"].nth(-2).mean(), ordered.x.nth(-2).mean()),
    "first rows": (lambda f: rows(f).head(2)["x"].mean(), NUMBERED.groupby("p").head(2).x.mean()),
    "one first row": (lambda f: rows(f).head(1)["wage"].sum(), NUMBERED.groupby("p").head(1).wage.sum()),
    "last rows": (lambda f: rows(f).tail(2)["x"].mean(), BACKWARDS.groupby("p").tail(2).x.mean()),
    "nth row": (lambda f: rows(f).nth(0)["x"].mean(), NUMBERED.groupby("p").head(1).x.mean()),
    "last row": (lambda f: rows(f).nth(-1)["k"].value_counts(), counted(BACKWARDS.groupby("p").tail(1).k, [0, 25, 95])),
    "first row of a person": (
        lambda f: f.sort_values(ORDER).drop_duplicates("p")["x"].mean(),
        NUMBERED.drop_duplicates("p").x.mean(),
    ),
    "last row of a person": (
        lambda f: f.sort_values(ORDER).drop_duplicates("p", keep="last")["x"].mean(),
        BACKWARDS.drop_duplicates("p", keep="last").x.mean(),
    ),
    "first row of a person and key": (
        lambda f: f.sort_values(ORDER).drop_duplicates(["p", "k"])["x"].sum(),
        NUMBERED.drop_duplicates(["p", "k"]).x.sum(),
    ),
    "descending": (
        lambda f: f.sort_values(ORDER, ascending=[False, True]).groupby("p")["x"].shift(1).mean(),
        DOWN.groupby("p").x.shift(1).mean(),
    ),
    "last, descending": (
        lambda f: f.sort_values(ORDER, ascending=[False, True]).drop_duplicates("p", keep="last")["x"].mean(),
        T.sort_values(ORDER, ascending=[False, True], na_position="first").drop_duplicates("p", keep="last").x.mean(),
    ),
    "by a category": (
        lambda f: f.sort_values(["k", "turn"]).groupby("p")["x"].cumsum().mean(),
        T.sort_values(["k", "turn"]).groupby("p").x.cumsum().mean(),
    ),
    "by dates": (
        lambda f: f.sort_values(["d", "turn"]).groupby("p")["x"].shift(1).mean(),
        T.sort_values(["d", "turn"]).groupby("p").x.shift(1).mean(),
    ),
    "only filtered rows": (
        lambda f: rows(f[f["year"] > 2000])["x"].shift(1).mean(),
        LATE.groupby("p").x.shift(1).mean(),
    ),
    "filtered afterwards": (
        lambda f: (lambda t: t[t.v > 3].v.mean())(f.assign(v=rows(f)["x"].shift(1))),
        ordered.x.shift(1).loc[lambda v: v > 3].mean(),
    ),
    "sorted by person too": (
        lambda f: f.sort_values(["p", *ORDER], ascending=[False, False, True]).groupby("p")["x"].shift(1).mean(),
        DOWN.groupby("p").x.shift(1).mean(),
    ),
    "per key": (
        lambda f: f.sort_values(ORDER).groupby(["p", "k"])["x"].cumsum().mean(),
        IN_ORDER.groupby(["p", "k"]).x.cumsum().mean(),
    ),
    "window of a window": (
        lambda f: (lambda t: t.groupby("p")["v"].shift(1).mean())(f.sort_values(ORDER).assign(v=rows(f)["x"].cumsum())),
        IN_ORDER.assign(v=ordered.x.cumsum()).groupby("p").v.shift(1).mean(),
    ),
    "groups by a window": (
        lambda f: f.groupby(rows(f).cumcount())["x"].sum(),
        T.groupby(NUMBERED.groupby("p").cumcount()).x.sum().reindex(range(MOST), fill_value=0),
    ),
    "fixed effects": (lambda f: f.regress("x ~ wage | p"), within_person(T, "x", "wage")),
    "fixed effects of filtered rows": (
        lambda f: f[f["k"] != 0].regress("x ~ wage + turn | p"),
        within_person(T[T.k != 0], "x", "wage", "turn"),
    ),
}

CASES = ONE_VALUE | TABLES | ROWS
ROUGH = {"median": 240 / 4096 * 2, "fixed effects": 4e-3, "fixed effects of filtered rows": 4e-3}


def test_no_case_has_the_name_of_another() -> None:
    assert len(CASES) == len(ONE_VALUE) + len(TABLES) + len(ROWS)


@pytest.mark.parametrize("name", CASES)
def test_an_answer_is_what_pandas_gives(panel: dpnb.Session, name: str) -> None:
    ask, wanted = CASES[name]
    close(ask(panel.frame).release(mu=MU), wanted, abs=ROUGH.get(name, 2e-3))


def test_tables_of_persons_are_merged_as_by_pandas() -> None:
    several = opened(
        table={"visits": T, "homes": HOMES},
        schema={"visits": SCHEMA, "homes": {"size": dpnb.Bounded(0, 10)}},
        max_rows_per_unit={"visits": MOST, "homes": 1},
    )
    visits, homes = several.table("visits"), several.table("homes")
    wanted = PEOPLE.reset_index().merge(HOMES, on="p")
    both = people(visits).merge(homes, on="p")
    assert both._view.max_rows == 1
    close(both.count().release(mu=MU), len(wanted), abs=1e-2)
    close(
        both[both["n"] > 2].groupby("arm", keys=["free", "half"])["size"].sum().release(mu=MU),
        wanted[wanted.n > 2].groupby("arm")["size"].sum(),
    )
    close((both["total"] * both["size"]).sum().release(mu=MU), (wanted.total * wanted["size"]).sum(), abs=1e-2)


def test_ties_are_in_an_order_of_their_own() -> None:
    """Rows that are equal in every column are interchangeable; others of one year have the same order each time."""
    table = pd.DataFrame({"p": [1, 1, 1, 1, 2, 2], "year": 2001.0, "x": [4.0, 4.0, 4.0, 4.0, 1.0, 9.0]})
    schema = {name: SCHEMA[name] for name in ("year", "x")}

    def asked(seed: int) -> list[float]:
        shuffled = table.sample(frac=1, random_state=seed)
        frame = opened(shuffled, schema=schema).frame.sort_values("year").groupby("p")
        queries = [
            frame["x"].shift(1).sum(),
            frame["x"].first().sum(),
            frame["x"].cumsum().sum(),
            frame.head(1)["x"].sum(),
        ]
        return [float(query.release(mu=MU).estimate) for query in queries]

    answers = [asked(seed) for seed in range(6)]
    assert all(found == answers[0] for found in answers)
    assert answers[0][0] == pytest.approx(12 + 1, abs=0.01) or answers[0][0] == pytest.approx(12 + 9, abs=0.01)


def test_a_row_without_an_order_is_in_no_value_but_has_that_of_its_person() -> None:
    table = pd.DataFrame({"p": [1, 1, 2], "year": [np.nan, 2001.0, np.nan], "x": [7.0, 3.0, 5.0]})
    frame = opened(table, schema={name: SCHEMA[name] for name in ("year", "x")}).frame.sort_values("year")
    own = frame.groupby("p")["x"]
    for query, wanted in {
        own.first().count(): 1,  # person 2 has no first value, but is a row
        own.first().isna().sum(): 1,
        own.first().sum(): 3,
        own.last().sum(): 3,
        own.nth(-1).sum(): 3,
        own.nth(1).count(): 0,
        own.transform("first").sum(): 6,
        own.cumsum().count(): 1,
        frame.groupby("p").head(1)["x"].sum(): 3 + 5,
        frame.groupby("p").tail(1)["x"].sum(): 3 + 5,
        frame.groupby("p").head(2).count(): 3,
    }.items():
        close(query.release(mu=MU), wanted)


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "shift without an order": (lambda f: by(f)["x"].shift(1), r"shift: depends on the order.*sort_values"),
    "first without an order": (lambda f: by(f)["x"].first(), r"first: depends on the order"),
    "head without an order": (lambda f: by(f).head(1), r"head: depends on the order"),
    "last duplicate without an order": (lambda f: f.drop_duplicates("p", keep="last"), "depends on the order"),
    "relative change around zero": (lambda f: rows(f)["x"].pct_change().mean(), "can be 0"),
    "sum of categories": (lambda f: by(f)["g"].sum().mean(), "needs a number|is a category"),
    "mode": (lambda f: by(f)["g"].agg("mode"), "'mode'"),
    "a function": (lambda f: by(f)["x"].transform(lambda x: x - x.mean()), "would run Python"),
    "keys that are numbers": (lambda f: f.groupby(["p", "x"]).size().mean(), "must be public"),
    "public keys": (lambda f: f.groupby("p", keys=[1, 2]), "units are private"),
    "rows of different persons": (lambda f: f.drop_duplicates("g"), "rows of different privacy units"),
    "an order of two": (lambda f: f.sort_values(["year", "turn"], ascending=[True]), "ascending must be"),
    "rows without an order first": (lambda f: f.sort_values("year", na_position="first"), "na_position='first'"),
    "a half row": (lambda f: rows(f)["x"].shift(0.5), "whole number of rows"),
    "no rows": (lambda f: rows(f).head(0), "whole number of rows"),
    "a window of no rows": (lambda f: rows(f)["x"].rolling(0), "at least 1"),
    "other effects": (lambda f: f.regress("x ~ wage | g"), "fixed effects are those of the privacy unit"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_meaning_within_a_person_is_refused(panel: dpnb.Session, name: str) -> None:
    ask, says = REFUSED[name]
    count = panel.ledger.count
    with pytest.raises((PlanError, UnsupportedError), match=says):
        ask(panel.frame)
    assert panel.ledger.count == count


def test_a_share_of_persons_has_the_noise_of_one_row_each(panel: dpnb.Session) -> None:
    """Of rows the noise would be that of as many as a person can have."""
    frame = panel.frame
    persons, own = (by(frame)["x"].max() > 3).sum(), (frame["x"] > 3).sum()
    noise = [float(query.release(mu=0.1).noise_scale) for query in (persons, own)]
    assert noise[1] / noise[0] == pytest.approx(MOST, rel=1e-6)
