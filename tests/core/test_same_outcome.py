"""Nothing that happens after a charge depends on the rows: the same outcome and text with and without a unit.

The attack that this would have found asked for a median whose range overflows a double: its release failed exactly if
a row was in the view, and so told of one person what a cent of the budget should never have told.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpnb
from dpnb._backends import MemoryBackend, TableBackend
from dpnb._backends import opened as open_tables
from dpnb._backends.memory import execute
from dpnb._compile import LinearQuery, grid, linear_query, lowering, sensitivity
from dpnb._core.execution import executor
from dpnb._plan.expressions import dtypes, rules
from dpnb._plan.plan import Plan
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.accounting.guarantee import FILTERS
from dpnb.accounting.individual import UnitChargeTerms
from dpnb.errors import DpnbError, ExecutionError, PlanError, UnsupportedError
from dpnb.frame import Frame
from dpnb.frame.view import TableView
from pairwise import product

Ask = Callable[[Any], Any]
MU = 0.05

SCHEMA: dict[str, Any] = {
    "x": dpnb.Bounded(-1e100, 1e100),
    "tiny": dpnb.Bounded(-1e-100, 1e-100),
    "w": dpnb.Bounded(0, 10),
    "i": dpnb.Bounded(0, 12, integer=True),
    "c": dpnb.Categories(["a", "b"]),
    "k": dpnb.Categories([0, 1, 2.5]),
    "d": dpnb.Dates("0001-01-01", "9999-12-31"),
    "t": dpnb.Text(),
}

EXTREMES: list[Any] = [
    *(0.0, -0.0, 5e-324, -5e-324, 2e-308, 1e-100, -1e-100, 1e100, -1e100, 1.7e308, -1.7e308, 10, 12),
    *(math.inf, -math.inf, math.nan, None, 2**63, 10**400, "zz", 1j, 1 + 0j, True),
]
DATES = ["0001-01-01", "9999-12-31T23:59:59.999999", None, "zz", "1970-01-01", math.inf]


def ordinary() -> pd.DataFrame:
    """Five people of two rows."""
    place = np.arange(10)
    return pd.DataFrame(
        {
            "person": place // 2,
            **dict.fromkeys(("x", "tiny", "w", "i", "k"), place % 3 * 1.0),
            "c": np.where(place % 3, "a", "b"),
            "d": "2000-06-01",
            "t": np.where(place % 2, "ann", "bob"),
        }
    ).astype(object)


def odd() -> pd.DataFrame:
    """One person, with a row for everything that can go wrong."""
    rows = len(EXTREMES)
    numbers = {name: pd.Series(EXTREMES, dtype=object) for name in ("x", "tiny", "w", "i", "k", "c", "t")}
    return pd.DataFrame({"person": 99, **numbers, "d": pd.Series([DATES[n % len(DATES)] for n in range(rows)])})


def tables() -> dict[str, pd.DataFrame]:
    """Two pairs of neighbours: with the person and without, beside others and beside nobody."""
    both = pd.concat([ordinary(), odd()], ignore_index=True)
    return {"others": ordinary(), "others and one": both, "nobody": ordinary().iloc[:0], "one": odd()}


EXPRESSIONS: dict[str, Ask] = {
    "x": lambda f: f["x"],
    "tiny": lambda f: f["tiny"],
    "whole": lambda f: f["i"],
    "ratio of ends": lambda f: f["x"] / (f["w"] + 1),
    "scaled": lambda f: f["tiny"] * 1e100 + f["x"] / 1e100,
    "power": lambda f: (f["w"] / 3) ** 7,
    "root": lambda f: (f["w"] * 0.1) ** 0.5,
    "exp": lambda f: (f["w"] - 5).exp(),
    "log": lambda f: np.log1p(f["w"]) - 1,
    "log of what is just above -1": lambda f: np.log1p(np.log1p(f["w"]) - 0.9999999999999999),
    "quotient of what is just above 0": lambda f: 1 / ((f["w"] + 1) ** 1.1 - 0.9999999999999998),
    "remainder": lambda f: f["x"] % 0.3,
    "whole quotient": lambda f: f["w"] // 0.1,
    "round": lambda f: f["x"].round(15) / 2 + f["x"].round(-15) / 2,
    "filled": lambda f: f["tiny"].fillna(1e100).where(f["w"] > 1, -1e-100),
    "clip": lambda f: f["x"].clip(-1e-100, 1e-100),
    "date": lambda f: f["d"].dt.year + (f["d"] - "1970-01-01").dt.total_seconds(),
    "condition": lambda f: (f["x"] >= 0).astype(float) * 2 - 1,
    "categories": lambda f: f["k"].astype(float),
}


def fitted(f: Any) -> Any:
    return f.fit("w", on=["x", "c"], family="linear", mu=MU, steps=2, public_size=10, chains=2).run()


def logistic(f: Any) -> Any:
    return f.regress(f["x"] > 0, on=["tiny", "c"], family="logistic").release(mu=MU)


def poisson(f: Any) -> Any:
    return f.regress(f["w"].clip(0, 9), on=["x", "c"], family="poisson").release(mu=MU)


QUESTIONS: dict[str, Ask] = {
    "count": lambda f: f.count(),
    "count of a column": lambda f: f["x"].count(),
    "units": lambda f: f.count_units(),
    "units by category": lambda f: f.groupby("c").count_units(),
    "mean by cut": lambda f: f.groupby(dpnb.cut(f["x"], [-math.inf, 0, 1e-100, math.inf]))["w"].mean(),
    "median by whole number": lambda f: f.groupby("i")["x"].median(),
    "sum by months": lambda f: f.groupby(f["d"].dt.month)["x"].sum(),
    "histogram": lambda f: f["x"].histogram(3),
    "value_counts": lambda f: f["c"].value_counts(),
    "shares of texts": lambda f: f["t"].value_counts(keys=["ann", "zz"], normalize=True),
    "describe": lambda f: f["tiny"].describe(),
    "corr": lambda f: f["x"].corr(f["tiny"]),
    "regress": lambda f: f.regress("x", on=["tiny", "c"]),
    "ratio": lambda f: f["x"].ratio(f["w"] + 1),
    "agg": lambda f: f.groupby("c").agg(n="count", u="units", m=("x", "mean"), s=("tiny", "std"), q=("x", "median")),
    "min": lambda f: f["x"].min(),
    "quantiles by round": lambda f: f.groupby(f["w"].round())["tiny"].quantile([0.1, 0.9]),
    "filtered": lambda f: f[(f["x"] >= 1e100) | (f["tiny"] <= -1e-100) | f["w"].isna()]["x"].std(),
    **{
        f"{name}, {verb}": lambda f, of=of, verb=verb: getattr(of(f), verb)()
        for name, of in EXPRESSIONS.items()
        for verb in ("mean", "median")
    },
}
QUESTIONS |= {f"sum, {name}": lambda f, of=of: of(f).sum() for name, of in EXPRESSIONS.items()}
QUESTIONS |= {f"var, {name}": lambda f, of=of: of(f).var() for name, of in EXPRESSIONS.items()}
FOUND: dict[str, Ask] = {"texts": lambda f: f.discover("t"), "numbers": lambda f: f.discover(["i", "t"])}

LIMITS: dict[str, dict[str, Any]] = {
    "row": {},
    "rows": {"privacy_unit": "person", "max_rows_per_unit": 15},
    "groups": {"privacy_unit": "person", "max_groups_per_unit": 2, "max_rows_per_group": 4},
    "norm": {"privacy_unit": "person", "max_norm_per_unit": 1.5, "max_groups_per_unit": 3},
}
MODES: dict[str, dict[str, Any]] = {
    "worst case": {},
    **{mode: {"accounting": "individual", "on_exhausted": mode} for mode in ("skip", "drop", "clip")},
}


def opened(table: Any, **changes: Any) -> dpnb.Session:
    budget = dpnb.Budget(epsilon=1 if "accounting" in changes else 50, delta=1e-6, discovery_delta=1e-7)
    arguments: dict[str, Any] = {"name": "clinic", "budget": budget, "schema": SCHEMA, "ledger": ":memory:"}
    return dpnb.Session(table, **{**arguments, **changes})


def outcome(session: dpnb.Session, ask: Ask, mu: float = MU) -> tuple[Any, ...]:
    """What an analyst can tell from a release, but for the numbers in it: they have noise."""
    try:
        asked = ask(session.frame)
        answer = asked.release(mu=mu) if hasattr(asked, "release") else asked
    except Exception as error:  # noqa: BLE001
        found: tuple[Any, ...] = (type(error), str(error), error.__cause__, session.ledger.count)
    else:
        table = answer.to_pandas() if hasattr(answer, "to_pandas") else pd.DataFrame()
        found = (table.shape, [str(kind) for kind in table.dtypes], session.ledger.count)
    return found


def assert_same(found: dict[str, tuple[Any, ...]], name: str = "") -> tuple[Any, ...]:
    """There is one outcome, whatever the table."""
    first = next(iter(found.values()))
    for table, other in found.items():
        assert other == first, (name, table)
    return first


def plans(ask: Ask, unit: PrivacyUnit) -> list[Plan]:
    """The plans of a question in pandas' words."""
    made: list[Plan] = []

    def asked(plan: Plan, view: Any) -> None:
        made.append(plan)

    ask(Frame(TableView("", {"": SCHEMA}, {"": unit}, asked, lambda _: "0.000001", None)))  # type: ignore[arg-type]
    return made


def summed(rows: TableBackend, compiled: LinearQuery, mode: str) -> tuple[Any, ...]:
    """How the work on rows ends that follows a charge."""
    try:
        if mode == "worst case":
            return rows.sums(compiled).shape
        # A budget for about one question, so that in every other one some have to be left out.
        terms = UnitChargeTerms(
            2.0 * compiled.l2_sensitivity_squared**0.5, compiled.l2_sensitivity_squared, False, mode == "clip"
        )
        unit_budgets = rows.unit_budgets(Fraction(3, 8), mode)  # type: ignore[arg-type]
        first, unit_budgets = unit_budgets.after_query(compiled, terms)
        return np.shape(first), np.shape(unit_budgets.after_query(compiled, terms)[0])
    except Exception as error:  # noqa: BLE001
        return type(error), str(error)


@cache
def read(limit: str) -> tuple[PrivacyUnit, dict[str, TableBackend]]:
    """Who a unit is, and the tables read once for all questions."""
    unit = opened(ordinary(), **LIMITS[limit])._core.tables.unit("")
    return unit, {name: MemoryBackend.read({"": table}, {"": SCHEMA}, {"": unit}) for name, table in tables().items()}


QUICK = {case.values for case in product(LIMITS, MODES, QUESTIONS, together=1) if not case.marks}
"""Each question once."""

# "drop" is as "skip", but for who takes part: only the pairwise part of it.
WORK = [
    pytest.param(*case.values, marks=() if case.values in QUICK else pytest.mark.slow)
    for case in product(LIMITS, MODES, QUESTIONS)
    if case.values[1] != "drop" or not case.marks or case.values in QUICK
]


@pytest.mark.parametrize(("limit", "mode", "name"), WORK)
def test_no_work_on_rows_ends_otherwise_with_and_without_a_unit(limit: str, mode: str, name: str) -> None:
    unit, rows = read(limit)
    for plan in plans(QUESTIONS[name], unit):
        compiled = linear_query(plan, SCHEMA, unit, divisible=mode == "clip")
        first = assert_same({table: summed(one, compiled, mode) for table, one in rows.items()}, name)
        assert isinstance(first[0], int | tuple), (name, first)  # and it has an answer


WHOLE = (
    "units by category",
    "agg",
    "regress",
    "quantiles by round",
    "filtered",
    "log of what is just above -1, median",
)


@pytest.mark.parametrize(
    ("limit", "mode"),
    [
        ("rows", "worst case"),
        ("rows", "skip"),
        *(pytest.param(limit, "worst case", marks=pytest.mark.slow) for limit in LIMITS if limit != "rows"),
        pytest.param("rows", "clip", marks=pytest.mark.slow),  # below, with strict settings, in the quick level too
    ],
)
def test_no_release_ends_otherwise_with_and_without_a_unit(limit: str, mode: str) -> None:
    sessions = {name: opened(table, **LIMITS[limit], **MODES[mode]) for name, table in tables().items()}
    asks = {"fit": fitted, "logistic": logistic, "poisson": poisson, **{name: QUESTIONS[name] for name in WHOLE}}
    for name, ask in asks.items():
        first = assert_same({table: outcome(session, ask) for table, session in sessions.items()}, name)
        is_refused = limit in ("groups", "norm") and ask in (logistic, poisson)  # they need max_rows_per_unit
        assert isinstance(first[0], tuple) != is_refused, (name, first)
    for ask in FOUND.values():  # but for how many groups are named, which has noise
        ends = {table: outcome(session, ask) for table, session in sessions.items()}
        assert_same({table: (end[0][1], *end[1:]) for table, end in ends.items()})


@contextmanager
def strict() -> Iterator[None]:
    """As an analyst may have set it: whatever overflows or warns is an error."""
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("mode", ["worst case", "clip"])
def test_what_the_analyst_has_set_for_warnings_decides_nothing(mode: str) -> None:
    sessions = {name: opened(table, **LIMITS["rows"], **MODES[mode]) for name, table in tables().items()}
    with strict():
        for name in (
            "agg",
            "regress",
            "filtered",
            "power, median",
            "var, exp",
            "quotient of what is just above 0, mean",
        ):
            found = {table: outcome(session, QUESTIONS[name]) for table, session in sessions.items()}
            assert isinstance(assert_same(found, name)[0], tuple), (name, found)
        assert_same({table: outcome(session, fitted) for table, session in sessions.items()}, "fit")


@pytest.fixture
def warned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows for which something overflows, is no number, or is warned of."""
    sums = MemoryBackend.sums

    def warning(*given: Any) -> Any:
        np.float64(1e308) * np.float64(10)
        np.array([math.nan]).astype(np.int64)
        warnings.warn("of a row", RuntimeWarning, stacklevel=1)
        return sums(*given)

    monkeypatch.setattr(MemoryBackend, "sums", warning)


@pytest.mark.usefixtures("warned")
@pytest.mark.parametrize("mode", ["worst case", "skip"])
def test_a_step_that_overflows_or_warns_for_a_row_is_no_error(mode: str) -> None:
    session = opened(ordinary(), **LIMITS["rows"], **MODES[mode])
    with strict():
        assert isinstance(outcome(session, QUESTIONS["count"])[0], tuple)


@pytest.mark.usefixtures("warned")
def test_without_settings_of_its_own_it_would_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "isolated_numeric_settings", lambda: lambda work: work)
    with strict():
        assert outcome(opened(ordinary()), QUESTIONS["count"])[0] is ExecutionError


# --- in an engine ----------------------------------------------------------------------------------------------------


def typed(table: pd.DataFrame) -> Any:
    """The same in an engine, as far as its types can hold it."""
    numbers = {name: pd.to_numeric(table[name].map(_double)) for name in ("x", "tiny", "w", "i", "k")}
    texts = {name: table[name].map(lambda value: value if isinstance(value, str) else None) for name in ("c", "t")}
    times = pd.to_datetime(table["d"].map(lambda value: value if value in DATES[:2] else None), format="ISO8601")
    found = pd.DataFrame(
        {"person": table["person"].astype("int64"), **numbers, **texts, "d": times.astype("datetime64[us]")}
    )
    return pl.from_pandas(found.astype({"c": "str", "t": "str", **dict.fromkeys(numbers, "float64")}))


def _double(value: Any) -> float:
    try:
        return float(value)
    except Exception:  # noqa: BLE001
        return math.nan


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["worst case", "skip"])
def test_no_work_in_an_engine_ends_otherwise(mode: str) -> None:
    unit = opened(ordinary(), **LIMITS["rows"])._core.tables.unit("")
    read = {name: open_tables({"": typed(table).lazy()}, {"": SCHEMA}, {"": unit}) for name, table in tables().items()}
    several = [name for name in QUESTIONS if name in ("agg", "units", "filtered") or name.endswith("median")]
    for name in several if mode == "worst case" else several[:4]:
        for plan in plans(QUESTIONS[name], unit):
            compiled = linear_query(plan, SCHEMA, unit)
            try:
                read["others"].refuse(compiled)
            except UnsupportedError:
                continue
            first = assert_same({table: summed(rows, compiled, mode) for table, rows in read.items()}, name)
            assert isinstance(first[0], int | tuple), (name, first)


# --- the attack ------------------------------------------------------------------------------------------------------

CENSUS = pd.DataFrame({"person": range(50), "age": [20.0] * 49 + [97.0], "income": [1e4] * 49 + [87_131.0]})
PLACES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda table: table,
    "polars": pl.from_pandas,
    "lazy polars": lambda table: pl.from_pandas(table).lazy(),
}


def attack(f: Any) -> Any:
    return (((f["age"] >= 0).astype(float) * 2 - 1) * 1.5e308).median()


def census(place: str, table: pd.DataFrame = CENSUS, **changes: Any) -> dpnb.Session:
    schema = {"age": dpnb.Bounded(0, 120), "income": dpnb.Bounded(0, 1e5)}
    people = {"schema": schema, "privacy_unit": "person", "max_rows_per_unit": 1}
    return dpnb.Session(
        PLACES[place](table),
        **{"name": "census", "budget": dpnb.Budget(epsilon=1, delta=1e-6), "ledger": ":memory:", **people, **changes},
    )


def probes(place: str, **changes: Any) -> dict[str, tuple[Any, ...]]:
    """The question about one person, where they are in the table and where they are not; a session for each."""
    tables = {"there": CENSUS, "not there": CENSUS.iloc[:-1]}
    return {
        name: outcome(census(place, table, **changes), lambda f: attack(f[f["age"] == 97]), mu=1e-6)
        for name, table in tables.items()
    }


WAYS: list[dict[str, Any]] = [*({"filter": name} for name in FILTERS), *list(MODES.values())[1:]]


@pytest.mark.parametrize(
    ("place", "way"),
    [(place, way) for place in PLACES for way in WAYS if (place, way) != ("lazy polars", MODES["clip"])],
    ids=str,
)
def test_the_oracle_is_refused_before_anything_is_charged(place: str, way: dict[str, Any]) -> None:
    first = assert_same(probes(place, **way))
    assert first[0] is PlanError
    assert first[-1] == 0


@pytest.mark.parametrize(
    ("low", "high"), [(-1e308, 1e308), (5e-324, 2e-322), (0, 1e-101), (0, 1e101), (-math.inf, 1), (math.nan, 1)]
)
def test_bounds_beyond_the_stated_sizes_are_refused(low: float, high: float) -> None:
    with pytest.raises(DpnbError, match=r"Bounded: .*1e-100 and 1e.100"):
        dpnb.Bounded(low, high)


BEYOND: dict[str, Ask] = {
    "product": lambda f: f["x"] * 1e100,
    "product of columns": lambda f: f["x"] * f["x"],
    "tiny product": lambda f: f["tiny"] * f["tiny"],
    "constant": lambda f: f["w"] + 1.5e308,
    "tiny constant": lambda f: f["w"] + 5e-324,
    "quotient": lambda f: f["w"] / 1e-200,
    "clip": lambda f: f["w"].clip(5e-324, 5e-324),
    "clip far": lambda f: f["w"].clip(None, 1e200),
    "filled": lambda f: f["w"].fillna(1e300),
    "comparison": lambda f: f["w"] > 1e-320,
    "list": lambda f: f["w"].isin([1, 5e-324]),
    "edge": lambda f: dpnb.cut(f["w"], [0, 5e-324, 1]),
    "power": lambda f: f["x"] ** 2,
    "exp": lambda f: (f["w"] * 30).exp(),
    "tiny exp": lambda f: (f["w"] * -30).exp(),
    "groups of huge numbers": lambda f: f.groupby((f["i"] - f["i"] + 1e30).round()).count(),
}


@pytest.fixture(scope="module")
def session() -> dpnb.Session:
    return opened(ordinary())


@pytest.mark.parametrize("case", BEYOND)
@pytest.mark.parametrize("verb", ["mean", "median", "count"])
def test_expressions_beyond_the_stated_sizes_are_refused_when_they_are_written(
    case: str, verb: str, session: dpnb.Session
) -> None:
    with pytest.raises(PlanError, match=r"1e-100 and 1e.100|must be public"):
        getattr(BEYOND[case](session.frame), verb)()
    with pytest.raises(PlanError):
        getattr(BEYOND[case](session.frame), verb)().preview(mu=0.1)


# --- the same attack where a defence is missing ----------------------------------------------------------------------


def old_leaves(feature: Any, rows: Any) -> Any:
    """As it was: what is no number after the division stays one that counts."""
    numbers, there = rows.numbers(feature.expression), rows.present(feature.expression)
    places = (numbers - feature.low) / feature.width
    np.clip(np.floor(places, out=places), 0, feature.leaves - 1, out=places)
    places[~there] = 0.0
    return places.astype(np.int64), there


def without_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (dtypes, rules):
        monkeypatch.setattr(module, "has_allowed_magnitude", lambda number: True)
    monkeypatch.setattr(lowering, "MIN_RELATIVE_RANGE", 0.0)


def test_the_oracle_works_without_the_defences_and_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    without_checks(monkeypatch)
    monkeypatch.setattr(sensitivity, "refuse_unsound", lambda *_: None)
    monkeypatch.setattr(grid, "pieces_of", lambda *_, **__: ())  # equal leaves
    monkeypatch.setattr(execute, "leaves_of", old_leaves)
    found = probes("pandas")
    assert found["there"][0] is ExecutionError
    assert isinstance(found["not there"][0], tuple)
    with pytest.raises(AssertionError):
        assert_same(found)


def test_the_last_check_of_a_plan_stops_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    without_checks(monkeypatch)
    monkeypatch.setattr(grid, "pieces_of", lambda *_, **__: ())  # equal leaves
    monkeypatch.setattr(execute, "leaves_of", old_leaves)
    first = assert_same(probes("pandas"))
    assert first[0] is PlanError
    assert first[-1] == 0


def test_a_total_evaluation_stops_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    without_checks(monkeypatch)
    monkeypatch.setattr(sensitivity, "refuse_unsound", lambda *_: None)
    assert isinstance(assert_same(probes("pandas"))[0], tuple)
