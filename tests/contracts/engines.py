"""What must hold wherever the rows are: the same questions give the same integers as of a pandas frame in memory.

Each engine's tests inherit :class:`EngineContract` and give `native`, which turns a pandas frame into the engine's own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from contracts import texts_and_dates, within_units, zones
from contracts.unit_plans import FUNCTIONS, UnitPlans
from dpnb._backends import MemoryBackend, opened
from dpnb._backends.lazy import execute, lazy_backend
from dpnb._backends.lazy.engines.engine import Engine
from dpnb._backends.unit_vectors import Sums
from dpnb._compile import LinearQuery, linear_query
from dpnb._plan.join import schema_of, unit_of
from dpnb._plan.measurements import Discovery
from dpnb._plan.plan import PartSource, Plan, column
from dpnb._plan.privacy_unit import PrivacyUnit, privacy_unit_from
from dpnb.errors import SchemaError, UnsupportedError
from dpnb.frame import Frame
from dpnb.frame.view import TableView
from dpnb.schema import Schema, schema_from
from dpnb.session.snapshot import snapshot

ROWS = 400

SCHEMA = schema_from(
    {
        "x": dpnb.Bounded(0, 100),
        "y": dpnb.Bounded(0, 40, integer=True),
        "k": dpnb.Categories([0, 25, 50, 95]),
        "c": dpnb.Categories(["a", "b", "q"]),
        "t": dpnb.Text(),
        "d": dpnb.Dates("1970-01-01", "2020-01-01"),
        "b": dpnb.Categories([False, True]),
    }
)

UNITS: dict[str, PrivacyUnit] = {
    "row": privacy_unit_from(None, SCHEMA),
    "whole number": privacy_unit_from("pid", SCHEMA, rows=3),
    "text": privacy_unit_from("name", SCHEMA, rows=4, groups=2, rows_per_group=1),
    "groups": privacy_unit_from("pid", SCHEMA, groups=1, rows_per_group=2),
}

Ask = Callable[[Any], Any]


def once(frame: Any) -> Any:
    """The frame with one row of each unit."""
    return frame if frame._view.unit is None else frame.bound_contributions(max_rows_per_unit=1)


QUESTIONS: dict[str, Ask] = {
    "count": lambda f: f.count(),
    "count of a column": lambda f: f["x"].count(),
    "sum": lambda f: f["x"].sum(),
    "mean": lambda f: f["x"].mean(),
    "mean of whole numbers": lambda f: f["y"].mean(),
    "filtered": lambda f: f[f["x"] > 30]["y"].sum(),
    "by category": lambda f: f.groupby("k")["x"].mean(),
    "by two": lambda f: f.groupby(["k", "c"])["y"].sum(),
    "by whole number": lambda f: f.groupby("y")["x"].sum(),
    "by condition": lambda f: f.groupby(f["x"] > 50)["y"].sum(),
    "units": lambda f: f.count_units(),
    "units by category": lambda f: f.groupby("k").count_units(),
    "quantiles": lambda f: f["x"].quantile([0.1, 0.5]),
    "quantiles of wide bounds": lambda f: ((f["x"] - 40) * (f["x"] - 40) * (f["x"] - 40) * 1e4).quantile([0.1, 0.5]),
    "median by condition": lambda f: f.groupby("b")["y"].median(),
    "standard deviation": lambda f: f["x"].std(),
    "variance": lambda f: f["x"].clip(1, 99).var(),
    "regression": lambda f: f.regress("y", on=["x", "k", "b"]),
    "table one": lambda f: once(f).table_one("b", ["y", "k"]),
    "several": lambda f: f.groupby("k").agg(n="count", m=("x", "mean"), q=("y", "median")),
    "ratio": lambda f: f["x"].sum() / f["y"].sum(),
    "text is": lambda f: f[f["t"] == "bob"]["x"].sum(),
    "text is not": lambda f: f[f["t"] != "bob"]["x"].sum(),
    "text is in": lambda f: f[f["t"].isin(["ann", "zoë"])]["x"].sum(),
    "by given texts": lambda f: f.groupby("t", keys=["ann", "zoë", "nobody"])["x"].sum(),
    "category is missing": lambda f: f[f["c"].isna()]["x"].sum(),
    "category is": lambda f: f[f["c"] != "a"]["x"].sum(),
    "categories in order": lambda f: f[f["k"] >= 25]["y"].sum(),
    "or": lambda f: f[(f["k"] == 25) | (f["x"] < 10)]["y"].sum(),
    "not or": lambda f: f[~((f["k"] == 25) | (f["x"] < 10))]["y"].sum(),
    "numbers in": lambda f: f[f["y"].isin([1, 2, 3, 40])]["x"].sum(),
    "fill": lambda f: f["x"].fillna(7).sum(),
    "quotient": lambda f: ((f["x"] + 1) / (f["y"] + 2)).mean(),
    "product": lambda f: (f["x"] * f["y"] - 3).sum(),
    "power": lambda f: (f["x"] ** 3).sum(),
    "round": lambda f: f["x"].round(1).sum(),
    "round to tens": lambda f: f.groupby(f["x"].round(-1))["y"].sum(),
    "multiples of five": lambda f: f.groupby((f["y"] // 5 * 5 - 5).abs())["x"].sum(),
    "whole quotient": lambda f: (f["y"] // 7).sum(),
    "remainder": lambda f: (f["y"] % 7).sum(),
    "whole quotient of multiples": lambda f: (f["y"] * 49 // 49).sum(),
    "remainder of multiples": lambda f: (f["y"] * 49 % 49).sum(),
    "quotient by a number": lambda f: (f["x"] / 49).sum(),
    "quantiles by a number": lambda f: (f["y"] / 49).quantile([0.1, 0.5]),
    "numbers of categories": lambda f: f["k"].astype(float).sum(),
    "by year": lambda f: f.groupby(f["d"].dt.year)["x"].sum(),
    "by month": lambda f: f.groupby(f["d"].dt.month)["x"].sum(),
    "quarter": lambda f: f["d"].dt.quarter.sum(),
    "day": lambda f: f["d"].dt.day.sum(),
    "day of year": lambda f: f["d"].dt.dayofyear.sum(),
    "day of week": lambda f: f["d"].dt.dayofweek.sum(),
    "hour": lambda f: f["d"].dt.hour.sum(),
    "days since": lambda f: (f["d"] - "1990-06-01").dt.days.sum(),
    "remainder of years": lambda f: (f["d"].dt.year % 7).sum(),
    "smallest, median and largest date": lambda f: f["d"].quantile([0, 0.5, 1]),
    "median date by group": lambda f: f.groupby("k")["d"].median(),
    "after a date": lambda f: f[f["d"] > "1990-06-01"]["x"].sum(),
    "cut": lambda f: f.groupby(dpnb.cut(f["x"], [0, 10, 20, 50, 100]))["y"].sum(),
    "cut from the left": lambda f: f.groupby(dpnb.cut(f["x"], [0, 10, 20, 50, 100], right=False))["y"].sum(),
    "where": lambda f: f["x"].where(f["y"] > 3, 5.0).sum(),
    "clip": lambda f: (f["x"] / 12).clip(0, 1).mean(),
    "lookup": lambda f: f.merge(PLACES, on=["k", "b"]).groupby("zone")["x"].sum(),
    "found texts": lambda f: f.discover("t"),
    "found pairs": lambda f: f.discover(["k", "t"]),
    "found numbers": lambda f: f.discover("y"),
}

LIMITED: dict[str, Ask] = {
    "one row": lambda f: f.bound_contributions(max_rows_per_unit=1)["x"].sum(),
    "one row of some": lambda f: f[f["y"] > 5].bound_contributions(max_rows_per_unit=1).groupby("k").count_units(),
    "one group": lambda f: f.bound_contributions(max_groups_per_unit=1).groupby("k")["x"].sum(),
    "one found group": lambda f: f.bound_contributions(max_groups_per_unit=1).discover("t"),
    "one row in two groups": lambda f: (
        f.bound_contributions(max_groups_per_unit=2, max_rows_per_group=1).groupby("y")["x"].sum()
    ),
}

PLACES = pd.DataFrame(
    {"k": [0, 0, 25, 95], "b": [False, True, True, False], "zone": ["north", "south", "south", "east"]}
)


def people(rows: int = ROWS) -> pd.DataFrame:
    """A table with everything that a column may lack or have too much of."""
    rng = np.random.default_rng(7)
    table = pd.DataFrame(
        {
            "pid": rng.integers(-5, rows // 5, rows),
            "x": rng.normal(30, 25, rows).round(2),
            "y": rng.integers(-5, 50, rows),
            "k": rng.choice([0, 25, 50, 95, 7], rows),
            "c": rng.choice(np.array(["a", "b", "zz", None], object), rows),
            "t": rng.choice(np.array(["ann", "bob", "eve", None, "zoë", ""], object), rows),
            "b": rng.integers(0, 2, rows).astype(bool),
        }
    )
    table["d"] = pd.to_datetime("1965-01-01") + pd.to_timedelta(rng.integers(0, 60 * 365 * 86400, rows), unit="s")
    table["name"] = "p" + table["pid"].astype(str)
    table.loc[::7, "x"], table.loc[3, "x"] = np.nan, np.inf
    table.loc[::5, "d"] = table["d"].dt.floor("D")[::5]
    table.loc[::11, "d"] = pd.NaT
    return pd.concat([table, table.iloc[:40]], ignore_index=True)  # some rows are there twice


TABLE = people()


OUTSIDE_SCHEMA = schema_from(
    {
        "n": dpnb.Bounded(0, 10, outside="drop"),
        "w": dpnb.Bounded(0, 10, integer=True, outside="drop"),
        "c": dpnb.Bounded(0, 10),
        "d": dpnb.Dates("2017-12-30", "2017-12-31"),
        "e": dpnb.Dates("2017-12-30", "2017-12-31", outside="drop"),
    }
)


def outside() -> pd.DataFrame:
    """Values within bounds, at them and beyond, and nothing."""
    numbers = np.tile([-0.5, -0.4, 0.0, 3.5, 10.0, 10.4, 11.0, np.nan, np.inf], 12)
    hours = pd.Timestamp("2017-12-29T12:30:00") + pd.to_timedelta(np.arange(len(numbers)) * 0.7, unit="h")
    hours = hours.where(np.arange(len(numbers)) % 10 > 0)
    return pd.DataFrame(
        {"pid": np.arange(len(numbers)) // 4, "n": numbers, "w": numbers, "c": numbers, "d": hours, "e": hours}
    )


OUTSIDE = outside()


def plans_of(ask: Ask, unit: PrivacyUnit, schema: Schema = SCHEMA) -> list[Plan]:
    """The plans that a question in pandas' words makes."""
    plans: list[Plan] = []

    class Asked:
        def __init__(self, plan: Plan) -> None:
            self.plan = plan

        def __truediv__(self, other: Any) -> None:
            plans.clear()

    def asked(plan: Plan, view: Any) -> Any:
        plans.append(plan)
        return Asked(plan)

    ask(Frame(TableView("", {"": schema}, {"": unit}, asked, lambda _: "0.000001", None)))  # type: ignore[arg-type]
    return plans


def compiled(ask: Ask, unit: PrivacyUnit) -> list[LinearQuery]:
    """What these plans sum."""
    return [linear_query(plan, SCHEMA, unit) for plan in plans_of(ask, unit)]


class EngineContract(ABC):
    """Inherited by the tests of every engine."""

    engine: type[Engine] | None = None

    asked: tuple[str, ...] = tuple(QUESTIONS)
    """Which questions are asked there."""

    every_unit = True
    """Whether each is asked under each privacy unit, and not only under the next one in turn as by `make test`."""

    every_window = 1
    """The step between the questions about values within a unit."""

    modes: tuple[str | None, ...] = (None, "skip", "drop")
    """What becomes of a unit that cannot pay; None for accounting in the worst case."""

    whole_logarithms = True
    """Whether the logarithm of a power is the whole number that it is in memory, and not one just beside it."""

    zoned: tuple[str, ...] = ("a", "o", "n")
    """The columns of `zones` that it can have; `n` has times without a zone."""

    every_zoned = 1
    """The step between the expressions of dates in a zone."""

    last = 10
    """How many questions a session is asked there, at least 4."""

    @abstractmethod
    def native(self, table: pd.DataFrame) -> Any:
        """The engine's own frame of the same rows."""

    @pytest.fixture(scope="class")
    @classmethod
    def at_hand(cls) -> dict[str, tuple[Any, Any]]:
        """Tables by privacy unit, in memory and in the engine; made once."""
        return {}

    def both(self, at_hand: dict[str, tuple[Any, Any]], unit: str) -> tuple[Any, Any]:
        """The tables in memory and in the engine."""
        if unit not in at_hand:
            at_hand[unit] = self.opened(TABLE, SCHEMA, UNITS[unit])
        return at_hand[unit]

    def opened(self, table: pd.DataFrame, schema: Schema, unit: PrivacyUnit, *added: str) -> tuple[Any, Any]:
        """A table in memory and in the engine, of whose columns some were added to the schema later."""
        here, there = ({"": frame} for frame in (table, self.native(table)))
        known = {"": schema}, {"": unit}, tuple(("", name) for name in added)
        return MemoryBackend.read(here, *known), opened(there, *known)

    def compare(self, asks: Iterable[Ask], table: pd.DataFrame, schema: Schema, unit: PrivacyUnit) -> None:
        """Ask a table in memory and in the engine."""
        here, there = self.opened(table, schema, unit)
        for ask in asks:
            for plan in plans_of(ask, unit, schema):
                same(linear_query(plan, schema, unit), here, there)

    def test_the_same_integers_as_in_memory(
        self, question: str, asking: str, at_hand: dict[str, tuple[Any, Any]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """For each of `asked`, of tables of the privacy unit `asking`; see conftest.py.  Only sums come out."""
        here, there = self.both(at_hand, asking)
        sizes = self.watched(monkeypatch)
        for query in compiled(QUESTIONS[question], UNITS[asking]):
            there.refuse(query)
            sizes.clear()
            same(query, here, there)
            assert sizes
            most = max(query.cells * query.slots, len(PLACES))
            assert max(sizes) <= most or isinstance(query.plan.aggregation, Discovery)

    @pytest.mark.parametrize("limit", LIMITED)
    def test_the_same_rows_of_a_unit_count(self, limit: str, at_hand: dict[str, tuple[Any, Any]]) -> None:
        for unit in ("whole number", "text") if self.every_unit else ("text",):
            for query in compiled(LIMITED[limit], UNITS[unit]):
                same(query, *self.both(at_hand, unit))

    def test_added_columns_choose_no_other_rows(self) -> None:
        """Of rows that are equal in the first columns, the added ones decide, in the order in which they were added."""
        unit = UNITS["whole number"]
        first = {name: SCHEMA[name] for name in ("k", "y")}
        table = TABLE.assign(y=TABLE["y"] // 20 * 20)  # so that many rows are equal in the first columns
        every: dict[str, Ask] = {
            "y": lambda f: f.groupby("k")["y"].sum(),
            "one y": lambda f: f.bound_contributions(max_rows_per_unit=1)["y"].sum(),
            "t": lambda f: f.groupby("t", keys=["ann", "bob", "eve"])["y"].sum(),
            "x": lambda f: f.groupby("c")["x"].sum(),
        }

        def integers(asked: tuple[str, ...], *added: str, hashed: tuple[str, ...] = ()) -> list[int]:
            schema = first | {name: SCHEMA[name] for name in (*added, *hashed)}
            here, there = self.opened(table, schema, unit, *added)
            found: list[int] = []
            for name in asked:
                for plan in plans_of(every[name], unit, schema):
                    found += map(int, same(linear_query(plan, schema, unit), here, there))
            return found

        before, with_text = integers(("y", "one y")), integers(("t",), "t")
        assert integers(("y", "one y", "t", "x"), "t", "c", "x", "d")[: len(before + with_text)] == before + with_text
        # Controls: a hash of the added columns, or another order of them, is about other rows.
        assert integers(("y", "one y"), hashed=("t", "c", "x", "d")) != before
        assert integers(("t",), "c", "x", "d", "t") != with_text

    @pytest.mark.parametrize("function", ["log1p", "exp", "root", "log", "log2", "log10"])
    def test_functions_move_a_row_by_a_step_at_most(self, function: str, at_hand: dict[str, tuple[Any, Any]]) -> None:
        asks: dict[str, Ask] = {
            "log1p": lambda f: np.log1p(f["x"]).sum(),
            "exp": lambda f: np.exp(f["y"] / 10).sum(),
            "root": lambda f: (f["x"] ** 0.5).sum(),
            "log": lambda f: np.log(f["x"] + 0.5).sum(),
            "log2": lambda f: np.log2(f["x"].clip(lower=1)).sum(),
            "log10": lambda f: np.log10(f["y"] + 1).sum(),
        }
        (query,) = compiled(asks[function], UNITS["row"])
        here, there = self.both(at_hand, "row")
        assert abs(int(here.sums(query)[0]) - int(there.sums(query)[0])) <= len(TABLE)

    def test_what_is_outside_counts_as_the_schema_says(self) -> None:
        table, schema = OUTSIDE, OUTSIDE_SCHEMA
        unit = privacy_unit_from("pid", schema, rows=3)
        here, there = self.opened(table, schema, unit)

        def asked(plan: Plan, _: Any) -> Any:
            same(linear_query(plan, schema, unit), here, there)
            return plan

        frame: Any = Frame(TableView("", {"": schema}, {"": PrivacyUnit("pid", 5)}, asked, lambda _: "0.000001"))
        for name in ("n", "w", "c"):
            column = frame[name]
            for question in (column.sum, column.count, column.median, column.isna().sum):
                question()
        frame.groupby("w").count_units()
        for name in ("d", "e"):
            frame.groupby(frame[name].dt.hour).count()
            frame.groupby(frame[name].dt.day).count()
            (frame[name] - "2017-12-30").dt.total_seconds().sum()
            frame[name].isna().sum()

    def test_comparisons_of_values_outside_their_bounds_give_the_same_integers(self) -> None:
        table, schema = OUTSIDE, OUTSIDE_SCHEMA
        here, there = self.opened(table, schema, PrivacyUnit())
        found = set()

        def asked(plan: Plan, _: Any) -> Any:
            found.add(int(same(linear_query(plan, schema, PrivacyUnit()), here, there)[0]))
            return plan

        frame: Any = Frame(TableView("", {"": schema}, {"": PrivacyUnit()}, asked, lambda _: "0.000001"))
        for name in ("n", "w", "c"):
            for constant in (0, 3.5, 9.99):
                above, below = frame[name] > constant, frame[name] <= constant
                frame[above].count()
                frame[~above & (frame["d"] > "2017-12-30")].count()
                frame[below | (frame[name] >= 10)].count()
        assert len(found) > 5

    def test_values_within_a_unit_give_the_same_integers(
        self, asking: str, step: int, left_out: int | None, at_hand: dict[str, tuple[Any, Any]]
    ) -> None:
        """Of tables of the privacy unit `asking`, every `step`-th question, but not every `left_out`-th of all."""
        unit, (here, there) = UNITS[asking], self.both(at_hand, asking)
        schemas, units = {"": SCHEMA}, {"": unit}
        found: dict[str, int] = {}

        def asked(plan: Plan, _: Any) -> Plan:
            source = plan.source
            query = linear_query(plan, schema_of(source, schemas), unit_of(source, units, schemas))
            there.refuse(query)
            found[plan.to_json()] = int(np.abs(same(query, here, there)).sum())
            return plan

        frame: Any = Frame(TableView("", schemas, units, asked, lambda _: "0.000001"))  # type: ignore[arg-type]
        faults = {}
        every, first = within_units.questions(frame, str(unit.column)), list(UNITS).index(asking)
        chosen = [*every][first % step :: step]
        if left_out is not None:
            chosen = [name for name in chosen if name not in [*every][first % left_out :: left_out]]
        for name in chosen:
            try:
                every[name]()
            except AssertionError as error:
                faults[name] = str(error)
        assert faults == {}
        assert len(found) > 0.85 * len(chosen) > 0
        assert sum(map(bool, found.values())) > 0.8 * len(found)

    @pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6))])
    def test_random_plans_of_units_give_the_same_integers(self, seed: int, at_hand: dict[str, tuple[Any, Any]]) -> None:
        """One of each function; also plans that only a client can write, with odd limits and offsets."""
        unit, (here, there) = UNITS["whole number"], self.both(at_hand, "whole number")
        schemas, units, step = {"": SCHEMA}, {"": unit}, min(self.every_window, 6)
        queries = [
            linear_query(plan, schema_of(plan.source, schemas), unit_of(plan.source, units, schemas))
            for plan in UnitPlans(schemas, 3, seed).plans(len(FUNCTIONS))[seed % step :: step]
        ]
        sums = [same(query, here, there) for query in queries]
        assert any(map(np.any, sums))

    def test_products_of_what_units_add_give_the_same_integers(self, at_hand: dict[str, tuple[Any, Any]]) -> None:
        unit, (here, there) = UNITS["whole number"], self.both(at_hand, "whole number")
        schemas, units = {"": SCHEMA}, {"": unit}
        for plan in within_units.products(3):
            query = linear_query(plan, schema_of(plan.source, schemas), unit_of(plan.source, units, schemas))
            there.refuse(query)
            assert np.any(same(query, here, there))

    def test_texts_and_dates_give_the_same_integers(self) -> None:
        schema = texts_and_dates.SCHEMA
        unit = privacy_unit_from("pid", schema, rows=3)
        here, there = self.opened(texts_and_dates.TABLE, schema, unit)
        for name, ask in texts_and_dates.QUESTIONS.items():
            if name in texts_and_dates.WHOLE_LOGARITHMS and not self.whole_logarithms:
                continue
            for plan in plans_of(ask, unit, schema):
                query = linear_query(plan, schema, unit)
                there.refuse(query)
                same(query, here, there)

    @pytest.mark.parametrize(
        "zone", [pytest.param(zone, marks=pytest.mark.slow if place else ()) for place, zone in enumerate(zones.ZONES)]
    )
    def test_dates_in_a_zone_are_those_of_pandas(self, zone: str) -> None:
        case = zones.zoned(zone)
        schema = {name: case.schema[name] for name in ("i", *self.zoned)}
        if self.engine is None:
            self.compare(zones.QUESTIONS.values(), case.table, schema, privacy_unit_from(None, schema))
            return
        for place, name in enumerate(self.zoned):
            nodes = dict(list(zones.nodes_of(zone, schema, name).items())[place :: self.every_zoned])
            found = zones.in_engine(self.engine(), self.native(case.table[[*schema]]), schema, nodes)
            expected = zones.wanted(zone, case.expected[name])
            assert zones.differences(found, {one: expected[one] for one in nodes}) == []

    def test_declared_values_are_found_by_their_exact_equals(self) -> None:
        """Also beside values that look alike, and where they are many."""
        texts, numbers = [f"key {code}" for code in range(100)], [code * 7.0 for code in range(100)]
        table = pd.DataFrame(
            {
                "t": np.array(["key 1", "key 1 ", "KEY 1", "", None, "key 99", "key 100", "k\u00e9y 1"] * 3, object),
                "f": [0.0, -0.0, 7.0, 7.000000001, np.nan, np.inf, 693.0, 700.0] * 3,
                "i": [0, 7, -7, 8, 693, 700, 2**62, -(2**62)] * 3,
            }
        )
        schema = schema_from(
            {
                "t": dpnb.Categories(texts),
                "f": dpnb.Categories(numbers),
                "i": dpnb.Categories([int(number) for number in numbers]),
            }
        )
        asks: list[Ask] = [lambda f, name=name: f.groupby(name).size() for name in schema]  # type: ignore[misc]
        asks += [lambda f: f[f["t"].isin(texts[1:])].count(), lambda f: f[f["i"] != 7].count()]
        asks += [lambda f: f.groupby(["t", "i"]).size(), lambda f: f["f"].astype(float).sum()]
        self.compare(asks, table, schema, PrivacyUnit())

    def test_numbers_of_categories_are_doubles_also_if_they_are_their_codes(self) -> None:
        """In integers the power would overflow, which some engines report if a row has one of the larger numbers."""
        schema = schema_from({"k": dpnb.Categories(range(5))})
        table = pd.DataFrame({"k": [0, 1, 2, 3, 4, 99, 1]})
        asks: list[Ask] = [
            lambda f: (f["k"].astype(float) ** 40).sum(),
            lambda f: f[f["k"].astype(float).isin([code / 2 for code in range(100)])].count(),
            lambda f: f[f["k"].astype(float) > -2].count(),
        ]
        self.compare(asks, table, schema, PrivacyUnit())

    def test_sums_of_more_than_64_bits_are_exact(self) -> None:
        """Such a table would have more than 2**32 rows; here each contributes more than any grid step."""
        if self.engine is None:
            pytest.skip("in memory a table has fewer than 2**31 rows")
        engine: Any = self.engine()
        values = [*[2**50 + 3] * 2**14, *[-(2**50) - 5] * 3]
        table = pd.DataFrame({"v": values, "cell": np.arange(len(values)) % 2})
        frame = engine.opened(self.native(table))
        parts = {"s": execute._parts(execute.FeatureColumns(present=None, value="v", slot=None), engine)}
        found = engine.collected(execute.grouped(engine, frame, ["cell"], parts))
        sums = dict(zip(found["cell"].tolist(), execute._whole(found, "s").tolist(), strict=True))
        assert sums == {cell: sum(values[cell::2]) for cell in (0, 1)}
        found = engine.collected(execute.grouped(engine, frame, [], parts))
        assert execute._whole(found, "s").tolist() == [sum(values)]

    def test_some_cells_are_measured_alone(self, at_hand: dict[str, tuple[Any, Any]]) -> None:
        (plan,) = plans_of(lambda f: f.groupby("k")["x"].mean(), UNITS["whole number"])
        same(linear_query(plan, SCHEMA, UNITS["whole number"], (1, 3)), *self.both(at_hand, "whole number"))

    def test_a_part_holds_the_same_rows(self, at_hand: dict[str, tuple[Any, Any]]) -> None:
        for most in (None, 1):
            part = PartSource("", column("k"), 25, most)
            (plan,) = plans_of(lambda f: f.groupby("c")["x"].mean(), UNITS["whole number"])
            plan = Plan(plan.aggregation, group_by=plan.group_by, source=part)
            same(linear_query(plan, SCHEMA, UNITS["whole number"]), *self.both(at_hand, "whole number"))

    def test_a_join_has_the_same_pairs(self, tmp_path: Path) -> None:
        schema = {"visits": {"y": SCHEMA["y"], "t": SCHEMA["t"]}, "homes": {"y": SCHEMA["y"], "k": SCHEMA["k"]}}

        def asked(native: Callable[[pd.DataFrame], Any], ledger: str) -> list[float]:
            session = dpnb.Session(
                {name: native(TABLE[["pid", *columns]]) for name, columns in schema.items()},
                name="joined",
                budget=dpnb.Budget(epsilon=50, delta=1e-6),
                privacy_unit="pid",
                max_rows_per_unit={"visits": 3, "homes": 2},
                schema=schema,
                ledger=tmp_path / ledger,
                not_private_test_seed=3,
            )
            pairs = session.table("visits").merge(session.table("homes"), on="pid")
            both = [
                pairs.count(),
                pairs.groupby("k")["y_x"].sum(),
                pairs.bound_contributions(max_rows_per_unit=2)["y_y"].sum(),
            ]
            return [value for query in both for value in np.ravel(query.release(mu=0.5).estimate).tolist()]

        assert asked(self.native, "there.dpnb") == asked(lambda table: table, "here.dpnb")

    def test_a_session_gives_the_same_answers(self, mode: str | None, tmp_path: Path) -> None:
        """For each of `modes`; also when some can pay no longer, and in a later kernel."""
        each = {} if mode is None else {"accounting": "individual", "on_exhausted": mode}
        answers = []
        for name, table in (("here", TABLE), ("there", self.native(TABLE))):
            found: list[Any] = []
            for questions in (slice(0, self.last - 3), slice(self.last - 3, self.last)):
                session = dpnb.Session(
                    table,
                    name="same",
                    budget=dpnb.Budget(epsilon=1000 if mode is None else 3, delta=1e-6, discovery_delta=1e-7),
                    privacy_unit="pid",
                    max_rows_per_unit=2,
                    schema=dict(SCHEMA),
                    ledger=tmp_path / f"{name}.dpnb",
                    not_private_test_seed=11,
                    **each,  # type: ignore[arg-type]
                )
                for ask in SESSION[questions]:
                    answer = ask(session.frame).release(mu=0.3)
                    found.append((answer.keys, repr(np.ravel(answer.estimate).tolist())))
                session.ledger.close()
            answers.append(found)
        assert answers[0] == answers[1]

    def test_a_selection_gives_the_same_keys(self, tmp_path: Path) -> None:
        """With the same coins; and again in a later kernel, at no cost."""
        found = []
        for name, table in (("here", TABLE), ("there", self.native(TABLE)), ("there", self.native(TABLE))):
            session = dpnb.Session(
                table,
                name="same",
                budget=dpnb.Budget(epsilon=1000, delta=1e-6),
                privacy_unit="pid",
                max_rows_per_unit=2,
                schema=dict(SCHEMA),
                ledger=tmp_path / f"{name}.dpnb",
                not_private_test_seed=11,
            )
            groups = session.frame.groupby(["k", "c"])
            found.append(
                [groups.size().top(2).release(epsilon=1).keys, groups.count_units().idxmax().release(epsilon=1).key]
            )
            assert session.ledger.count == 2
            session.ledger.close()
        assert found[0] == found[1] == found[2]

    def watched(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """How many rows everything has that is brought out of the engine from now on."""
        sizes: list[int] = []
        engine: Any = self.engine
        collect = engine.collected

        def watching(it: Engine, frame: Any) -> Any:
            columns = collect(it, frame)
            sizes.append(max(map(len, columns.values())))
            return columns

        monkeypatch.setattr(engine, "collected", watching)
        return sizes


class TypedEngineContract(EngineContract):
    """Inherited by the tests of engines whose columns have types, and which cannot do everything."""

    @pytest.mark.parametrize(
        ("name", "column", "values"),
        [
            ("x", dpnb.Bounded(0, 1), ["a", "b"]),
            ("d", dpnb.Dates("1970-01-01", "1980-01-01"), [1.5, 2.5]),
            ("c", dpnb.Categories(["north", "south"]), [0, 25]),  # which were -1 for every row: confident zeros
            ("b", dpnb.Categories(["yes", "no"]), [True, False]),
        ],
    )
    def test_a_type_that_cannot_hold_the_column_is_refused(
        self, name: str, column: Any, values: list[Any], tmp_path: Path
    ) -> None:
        with pytest.raises(SchemaError, match=f"column '{name}'.*(cast it|write the categories|list numbers)"):
            dpnb.Session(
                self.native(pd.DataFrame({name: values})),
                name="types",
                budget=dpnb.Budget.gdp(1),
                schema={name: column},
                ledger=tmp_path / "types.dpnb",
            )

    def test_what_cannot_be_asked_there_is_refused_before_anything_is_charged(self, tmp_path: Path) -> None:
        session = dpnb.Session(
            self.native(TABLE),
            name="refused",
            public_size=100,
            budget=dpnb.Budget.gdp(1),
            privacy_unit="pid",
            max_rows_per_unit=2,
            schema=dict(SCHEMA),
            ledger=tmp_path / "refused.dpnb",
        )
        frame = session.frame
        for ask in (
            lambda: frame.bound_contributions(max_norm_per_unit=1.5)["x"].sum(),
            lambda: (frame["x"] % 0.7).sum(),
            lambda: frame.fit("y", on=["x"], family="linear", mu=0.1, steps=2, clip_norm=1.0),
        ):
            with pytest.raises(UnsupportedError, match=r"memory|whole numbers"):
                ask()
        assert not session.ledger.charges()

    def test_a_norm_that_cannot_be_kept_there_is_refused_when_the_session_is_made(self, tmp_path: Path) -> None:
        def made(**limits: Any) -> dpnb.Session:
            return dpnb.Session(
                self.native(TABLE),
                name="norm",
                budget=dpnb.Budget.gdp(1),
                privacy_unit="pid",
                schema=dict(SCHEMA),
                ledger=tmp_path / "norm.dpnb",
                max_norm_per_unit=2.5,
                **limits,
            )

        for limits in ({}, {"max_rows_per_unit": 3}, {"max_groups_per_unit": 3, "max_rows_per_group": 1}):
            with pytest.raises(SchemaError, match="max_norm_per_unit: needs a table in memory or on Dask"):
                made(**limits)
        assert not (tmp_path / "norm.dpnb").exists()
        made(max_rows_per_unit=2).frame["x"].sum().release(mu=0.1)  # the rows imply the norm

    def test_the_engine_is_named(self, tmp_path: Path) -> None:
        session = dpnb.Session(
            self.native(TABLE),
            name="named",
            budget=dpnb.Budget.gdp(1),
            schema=dict(SCHEMA),
            ledger=tmp_path / "named.dpnb",
        )
        engine = snapshot(session).engine
        assert engine in ("polars", "DuckDB", "Spark", "PostgreSQL", "SQLite")
        assert f"table in {engine}" in repr(session)
        assert f"Its rows are in {engine}" in str(session.explain())
        assert engine in str(session)
        assert engine in session._repr_html_()

    @pytest.mark.parametrize(
        ("given", "says"),
        [
            ({}, "needs privacy_unit="),
            ({"privacy_unit": "pid", "max_rows_per_unit": 2, "on_exhausted": "clip"}, "clip"),
        ],
    )
    def test_purses_that_cannot_be_kept_there_are_refused(
        self, given: dict[str, Any], says: str, tmp_path: Path
    ) -> None:
        def made() -> dpnb.Session:
            return dpnb.Session(
                self.native(TABLE),
                name="unit_budgets",
                budget=dpnb.Budget.gdp(1),
                schema=dict(SCHEMA),
                ledger=tmp_path / "unit_budgets.dpnb",
                accounting="individual",
                **given,
            )

        with pytest.raises(SchemaError, match=says):
            made()
        assert not (tmp_path / "unit_budgets.dpnb").exists()


class SortingEngineContract(TypedEngineContract):
    """Inherited by the tests of engines that put rows in order on one machine, share by share of the units."""

    @pytest.fixture
    def shares(self, monkeypatch: pytest.MonkeyPatch) -> int:
        """As many as a table is asked in."""
        monkeypatch.setattr(self.engine, "rows_at_once", 250)
        return -(-len(TABLE) // 250)

    @pytest.mark.parametrize("units", [["p", None, None], [None] * 3, []])
    def test_a_table_without_a_unit_is_answered_like_any_other(self, units: list[str | None]) -> None:
        table = pd.DataFrame({"u": pd.array(units, "string"), "x": np.ones(len(units))})
        schema: Schema = {"x": dpnb.Bounded(0, 10)}
        self.compare(
            [lambda f: f.count(), lambda f: f.count_units(), lambda f: f["x"].sum()],
            table,
            schema,
            privacy_unit_from("u", schema, rows=2),
        )

    @pytest.mark.parametrize(
        "unit",
        ["whole number", pytest.param("text", marks=pytest.mark.slow), pytest.param("groups", marks=pytest.mark.slow)],
    )
    def test_share_by_share_the_integers_are_the_same(
        self, unit: str, shares: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As in `asked`, each question under every unit, or under one of them in turn."""
        here, there = self.opened(TABLE, SCHEMA, UNITS[unit])
        sizes = self.watched(monkeypatch)
        names = ("mean", "by two", "units", "several", "regression", "found pairs")
        asks = [*(QUESTIONS[name] for name in names), *LIMITED.values()]
        for ask in asks if self.every_unit else asks[list(UNITS).index(unit) - 1 :: 3]:
            for query in compiled(ask, UNITS[unit]):
                sizes.clear()
                same(query, here, there)
                assert len(sizes) >= shares

    @pytest.mark.parametrize("kept", [0, 2**30])
    def test_few_or_many_rows_the_same_ones_of_a_unit_count(self, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lazy_backend, "MAX_KEPT_BYTES", kept)
        monkeypatch.setattr(self.engine, "rows_at_once", 250)
        for shift in (5, 2**33):
            table = TABLE.assign(pid=TABLE["pid"] + shift)
            here, there = self.opened(table, SCHEMA, UNITS["whole number"])
            for name in ("mean", "units"):
                for query in compiled(QUESTIONS[name], UNITS["whole number"]) * (2 if kept else 1):
                    same(query, here, there)

    def test_a_table_of_single_rows_is_asked_at_once(self, shares: int, monkeypatch: pytest.MonkeyPatch) -> None:
        there = opened({"": self.native(TABLE)}, {"": SCHEMA}, {"": UNITS["row"]})
        (query,) = compiled(QUESTIONS["sum"], UNITS["row"])
        sizes = self.watched(monkeypatch)
        there.sums(query)
        assert shares > 1
        assert len(sizes) == 1

    @pytest.mark.slow
    @pytest.mark.usefixtures("shares")
    def test_share_by_share_the_same_units_can_pay(self, tmp_path: Path) -> None:
        self.last = self.last if self.every_unit else 5
        self.test_a_session_gives_the_same_answers("drop", tmp_path)

    @pytest.mark.usefixtures("shares")
    def test_share_by_share_a_join_has_the_same_pairs(self, tmp_path: Path) -> None:
        self.test_a_join_has_the_same_pairs(tmp_path)


SESSION: list[Ask] = [
    lambda f: f.count(),
    lambda f: f.groupby("k")["x"].mean(),
    lambda f: f.count_units(),
    lambda f: f.discover("t", discovery_delta="1e-8"),
    lambda f: f[f["k"] == 25]["x"].sum(),
    lambda f: f["x"].quantile([0.25, 0.5]),
    lambda f: f[f["t"] == "ann"]["y"].sum(),
    lambda f: f[f["x"] < 40].groupby("c").count_units(),
    lambda f: f["y"].std(),
    lambda f: f[f["y"] > 30]["x"].mean(),
]


def same(query: LinearQuery, here: Any, there: Any) -> Sums:
    """The sums or the numbers of units that the engine gives, as memory does."""
    if isinstance(query.plan.aggregation, Discovery):
        (keys, counts), (keys_there, counts_there) = here.groups(query), there.groups(query)
        assert (keys, counts.tolist()) == (keys_there, counts_there.tolist())
        return counts
    found: list[Sums] = [tables.sums(query) for tables in (here, there)]
    assert found[0].tolist() == found[1].tolist()
    return found[0]
