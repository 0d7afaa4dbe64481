"""What the curator declares is checked before a row is read, and a session that breaks a rule leaves no ledger."""

from __future__ import annotations

import datetime
import math
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb._plan.plan import Plan
from session.bad_input import SCHEMA, assert_refused, make, make_table

HALF = "\ud800"  # half of a surrogate pair
NO_ROWS = {"max_rows_per_unit": None}

SESSIONS: dict[str, tuple[dict[str, Any], str]] = {
    "a path for a table": ({"table": "people.csv"}, "data frame"),
    "a dict of columns for a table": ({"table": {"visits": [1]}}, "schema"),
    "a list for a table": ({"table": [1, 2]}, "data frame"),
    "a series for a table": ({"table": make_table()["visits"]}, "data frame"),
    "a column of the schema is missing": ({"schema": {**SCHEMA, "hight": dpnb.Bounded(0, 1)}}, "not in the table"),
    "a column is there twice": ({"table": pd.concat([make_table(), make_table()], axis=1)}, "more than once"),
    "privacy unit is missing": ({"privacy_unit": "persn"}, "not in the table"),
    "privacy unit is not a name": ({"privacy_unit": 7}, "a column name"),
    "privacy unit is empty": ({"privacy_unit": ""}, "a column name"),
    "privacy unit is a list": ({"privacy_unit": ["person", "town"]}, "a column name"),
    "privacy unit is in the schema": ({"privacy_unit": "town"}, "leave it out"),
    "privacy unit without a limit": (NO_ROWS, "required"),
    "only groups are limited": ({**NO_ROWS, "max_groups_per_unit": 2}, "max_rows_per_group="),
    "only rows in a group are limited": ({**NO_ROWS, "max_rows_per_group": 2}, "max_groups_per_unit="),
    "max_rows_per_unit without privacy unit": ({"privacy_unit": None}, "required with max_rows_per_unit=2"),
    "max_groups_per_unit without privacy unit": (
        {**NO_ROWS, "privacy_unit": None, "max_groups_per_unit": 2},
        "required with max_groups_per_unit=2",
    ),
    "max_norm_per_unit without privacy unit": (
        {**NO_ROWS, "privacy_unit": None, "max_norm_per_unit": 2},
        "required with max_norm_per_unit=2",
    ),
    "max_rows_per_unit zero": ({"max_rows_per_unit": 0}, "whole number from 1"),
    "max_rows_per_unit negative": ({"max_rows_per_unit": -3}, "whole number from 1"),
    "max_rows_per_unit a fraction": ({"max_rows_per_unit": 2.5}, "whole number from 1"),
    "max_rows_per_unit a truth value": ({"max_rows_per_unit": True}, "whole number from 1"),
    "max_rows_per_unit a text": ({"max_rows_per_unit": "2"}, "whole number from 1"),
    "max_rows_per_unit beyond reason": ({"max_rows_per_unit": 2**40}, "whole number from 1"),
    "max_rows_per_unit by table, of one": ({"max_rows_per_unit": {"visits": 2}}, "whole number from 1"),
    "max_groups_per_unit zero": ({"max_groups_per_unit": 0}, "max_groups_per_unit"),
    "max_groups_per_unit a text": ({"max_groups_per_unit": "all"}, "max_groups_per_unit"),
    "max_rows_per_group negative": ({"max_rows_per_group": -1}, "max_rows_per_group"),
    "max_rows_per_group a fraction": ({"max_rows_per_group": 0.5}, "max_rows_per_group"),
    "max_norm_per_unit zero": ({"max_norm_per_unit": 0}, "max_norm_per_unit"),
    "max_norm_per_unit nan": ({"max_norm_per_unit": math.nan}, "max_norm_per_unit"),
    "max_norm_per_unit infinite": ({"max_norm_per_unit": math.inf}, "max_norm_per_unit"),
    "max_norm_per_unit a list": ({"max_norm_per_unit": [1]}, "max_norm_per_unit"),
    "max_norm_per_unit beyond doubles": ({"max_norm_per_unit": 10**400}, "max_norm_per_unit"),
    "schema missing": ({"schema": None}, "column name"),
    "schema empty": ({"schema": {}}, "column name"),
    "schema a list": ({"schema": ["visits"]}, "column name"),
    "schema with a bare tuple": ({"schema": {"visits": (0, 10)}}, "dpnb.Bounded"),
    "schema with a bare list": ({"schema": {"town": ["north", "south"]}}, "dpnb.Categories"),
    "schema with a type": ({"schema": {"visits": float}}, "dpnb.Bounded"),
    "schema with a text": ({"schema": {"born": "date"}}, "dpnb.Dates"),
    "schema with a class": ({"schema": {"street": dpnb.Text}}, r"dpnb\.Text\(\)"),
    "schema with a Python type": ({"schema": {"ill": bool}}, r"write dpnb\.Categories\(\[True, False\]\)"),
    "schema with a pair": ({"schema": {"height": (0, 2.5)}}, r"write dpnb\.Bounded\(0, 2\.5\)"),
    "schema with a list": ({"schema": {"town": ["a", "b"]}}, r"write dpnb\.Categories\(\[\.\.\.\]\)"),
    "schema of several tables for one": ({"schema": {"clinic": SCHEMA}}, "dpnb.Bounded"),
    "schema with a number for a name": ({"schema": {3: dpnb.Bounded(0, 1)}}, "a column name"),
    "schema with an empty name": ({"schema": {"": dpnb.Bounded(0, 1)}}, "a column name"),
    "a number for a budget": ({"budget": 1.0}, "dpnb.Budget"),
    "two budgets": ({"budget": [dpnb.Budget.gdp(1), dpnb.Budget.gdp(2)]}, "dpnb.Budget"),
    "a name with a slash": ({"name": "a/b"}, "letters"),
    "an empty name": ({"name": ""}, "letters"),
    "a name that is no text": ({"name": 3}, "letters"),
    "a name that is too long": ({"name": "a" * 101}, "letters"),
    "public size zero": ({"public_size": 0}, "positive whole number"),
    "public size negative": ({"public_size": -1}, "positive whole number"),
    "public size a fraction": ({"public_size": 10.5}, "positive whole number"),
    "public size a truth value": ({"public_size": True}, "positive whole number"),
    "an empty version": ({"version": ""}, "version"),
    "a version that is no text": ({"version": 1982}, "version"),
    "a version that no file can hold": ({"version": HALF}, "version"),
    "a column that no file can hold": (
        {"table": pd.DataFrame(1, [0], pd.Index(["person", HALF], dtype=object)), "schema": {HALF: dpnb.Bounded(0, 1)}},
        "a column name",
    ),
    "a test seed that is no number": ({"not_private_test_seed": "a"}, "seed"),
    "a test seed below 0": ({"not_private_test_seed": -1}, "seed"),
    "an unknown filter": ({"filter": "strict"}, "filter"),
    "no filter": ({"filter": None}, "filter"),
    "a GDP budget for an epsilon filter": ({"filter": "basic", "budget": dpnb.Budget.gdp(1)}, "epsilon"),
    "a ledger that is no path": ({"ledger": 7}, "path of a file"),
    "an empty ledger path": ({"ledger": ""}, "path of a file"),
}


@pytest.mark.parametrize(("changes", "says"), SESSIONS.values(), ids=SESSIONS)
def test_a_session_that_breaks_a_rule_is_refused_and_leaves_no_ledger(
    changes: dict[str, Any], says: str, tmp_path: Path
) -> None:
    assert_refused(lambda: make(**{"ledger": tmp_path / "clinic.dpnb", **changes}), says)
    assert list(tmp_path.iterdir()) == []


def test_a_session_without_a_table_is_refused() -> None:
    assert_refused(
        lambda: dpnb.Session(None, name="clinic", budget=dpnb.Budget.gdp(1), schema=SCHEMA, ledger=":memory:"),
        "data frame",
    )


Declare = tuple[Callable[[], Any], str]
BOUNDS: Any = dpnb.Bounded
LISTED: Any = dpnb.Categories
DATES: Any = dpnb.Dates
BUDGET: Any = dpnb.Budget

TYPES: dict[str, Declare] = {
    "bounds reversed": (lambda: BOUNDS(10, 0), "ascending order"),
    "bounds equal": (lambda: BOUNDS(3, 3), "below high"),
    "lower bound not a number": (lambda: BOUNDS(math.nan, 1), "finite"),
    "upper bound not a number": (lambda: BOUNDS(0, math.nan), "finite"),
    "upper bound infinite": (lambda: BOUNDS(0, math.inf), "finite"),
    "lower bound infinite": (lambda: BOUNDS(-math.inf, 0), "finite"),
    "bound a text": (lambda: BOUNDS("0", 1), "finite"),
    "bound nothing": (lambda: BOUNDS(0, None), "finite"),
    "bound a truth value": (lambda: BOUNDS(False, 1), "finite"),
    "bound a Decimal": (lambda: BOUNDS(Decimal("nan"), 1), "finite"),
    "bound a date": (lambda: BOUNDS("1950-01-01", "2000-01-01"), "finite"),
    "bound beyond doubles": (lambda: BOUNDS(0, 10**400), "finite"),
    "bounds too close": (lambda: BOUNDS(1e9, 1e9 + 1), "subtract a public constant"),
    "categories empty": (lambda: LISTED([]), "at least one"),
    "categories with a duplicate": (lambda: LISTED(["a", "b", "a"]), "remove one"),
    "categories equal across types": (lambda: LISTED([1, 1.0]), "remove one"),
    "categories with true and one": (lambda: LISTED([1, True]), "remove one"),
    "categories a text": (lambda: LISTED("ab"), "a list of values"),
    "categories a set": (lambda: LISTED({"a"}), "a list of values"),
    "categories a number": (lambda: LISTED(3), "a list of values"),
    "categories a mapping": (lambda: LISTED({"a": 1}), "a list of values"),
    "categories with nothing": (lambda: LISTED(["a", None]), "need no category"),
    "categories with nan": (lambda: LISTED([1.0, math.nan]), "need no category"),
    "categories with a list": (lambda: LISTED([["a"]]), "a str, a bool or a finite number"),
    "categories with a date": (lambda: LISTED([pd.Timestamp(0)]), "a str, a bool or a finite number"),
    "a category that no file can hold": (lambda: make(schema={"town": LISTED([HALF])}), "text|str"),
    "a category beyond 64 bits": (lambda: LISTED([2**70]), "use text"),
    "dates reversed": (lambda: DATES("2000-01-01", "1950-01-01"), "before last"),
    "dates equal": (lambda: DATES("2000-01-01", "2000-01-01T00:00:00"), "before last"),
    "dates that drop by another word": (lambda: DATES("2000-01-01", "2000-01-01", outside="null"), "'clamp' or 'drop'"),
    "bounds that drop by another word": (lambda: dpnb.Bounded(0, 1, outside=True), "'clamp' or 'drop'"),  # type: ignore[arg-type]
    "bounds that drop by a list": (lambda: dpnb.Bounded(0, 1, outside=["drop"]), "'clamp' or 'drop'"),  # type: ignore[arg-type]
    "dates equal in another zone": (lambda: DATES("2000-01-01T02:00", "2000-01-01T04:00+02:00"), "before last"),
    "a date in words": (lambda: DATES("yesterday", "2000-01-01"), "such as '1974-11-01'"),
    "a date that does not exist": (lambda: DATES("1950-01-01", "1999-02-30"), "such as '1974-11-01'"),
    "a date as it is written elsewhere": (lambda: DATES("01/02/1950", "2000-01-01"), "such as '1974-11-01'"),
    "a year": (lambda: DATES(1950, 2000), "such as '1974-11-01'"),
    "a year in a text": (lambda: DATES("1950", "2000"), "such as '1974-11-01'"),
    "a date nothing": (lambda: DATES("1950-01-01", None), "such as '1974-11-01'"),
    "a date not a time": (lambda: DATES(pd.NaT, "2000-01-01"), "such as '1974-11-01'"),
    "a date nan": (lambda: DATES("1950-01-01", math.nan), "such as '1974-11-01'"),
    "a date true": (lambda: DATES("1950-01-01", True), "such as '1974-11-01'"),
    "a date empty": (lambda: DATES("", "2000-01-01"), "such as '1974-11-01'"),
    "a time of day": (lambda: DATES(datetime.time(8), "2000-01-01"), "such as '1974-11-01'"),
    "a date beyond the calendar": (lambda: DATES("1950-01-01", "12000-01-01"), "such as '1974-11-01'"),
    "a date that a zone moves out of the calendar": (
        lambda: DATES("1950-01-01", "9999-12-31T23:00-05:00"),
        "such as '1974-11-01'",
    ),
    "a numpy date that is none": (lambda: DATES(np.datetime64("NaT"), "2000-01-01"), "such as '1974-11-01'"),
    "a list of dates": (lambda: DATES(["1950-01-01"], "2000-01-01"), "such as '1974-11-01'"),
}

BUDGETS: dict[str, Declare] = {
    "epsilon zero": (lambda: BUDGET(0, 1e-6), "greater than 0"),
    "epsilon negative": (lambda: BUDGET(-1, 1e-6), "greater than 0"),
    "epsilon not a number": (lambda: BUDGET(math.nan, 1e-6), "finite"),
    "epsilon infinite": (lambda: BUDGET(math.inf, 1e-6), "finite"),
    "epsilon a text that is no number": (lambda: BUDGET("one", 1e-6), "finite"),
    "delta zero": (lambda: BUDGET(1, 0), "between 0 and 1"),
    "delta one": (lambda: BUDGET(1, 1), "between 0 and 1"),
    "delta negative": (lambda: BUDGET(1, -1e-6), "between 0 and 1"),
    "delta not a number": (lambda: BUDGET(1, math.nan), "finite"),
    "delta nothing": (lambda: BUDGET(1, None), "finite"),
    "discovery_delta negative": (lambda: BUDGET(1, 1e-6, discovery_delta=-1e-9), "at least 0 and below delta"),
    "discovery_delta all of delta": (lambda: BUDGET(1, 1e-6, discovery_delta=1e-6), "a tenth of delta"),
    "discovery_delta above delta": (lambda: BUDGET(1, 1e-6, discovery_delta=0.1), "a tenth of delta"),
    "discovery_delta one": (lambda: BUDGET(1, 1e-6, discovery_delta=1), "a tenth of delta"),
    "discovery_delta not a number": (lambda: BUDGET(1, 1e-6, discovery_delta=math.nan), "finite"),
    "discovery_delta a text": (lambda: BUDGET(1, 1e-6, discovery_delta="some"), "finite"),
    "discovery_delta true": (lambda: BUDGET(1, 1e-6, discovery_delta=True), "finite"),
    "discovery_delta nothing": (lambda: BUDGET(1, 1e-6, discovery_delta=None), "finite"),
    "mu zero": (lambda: BUDGET.gdp(0), "greater than 0"),
    "mu negative": (lambda: BUDGET.gdp(-0.5), "greater than 0"),
    "mu not a number": (lambda: BUDGET.gdp(math.nan), "finite"),
    "mu infinite": (lambda: BUDGET.gdp(math.inf), "finite"),
    "mu a truth value": (lambda: BUDGET.gdp(True), "finite"),
}

COUNT = '{"aggregation":{"of":"count"}'
TEXTS: dict[str, Declare] = {
    "a plan from a mapping without anything": (lambda: Plan.from_json("{}"), "to_json"),
    "a plan from broken JSON": (lambda: Plan.from_json("{"), "to_json"),
    "a plan from nothing": (lambda: Plan.from_json(""), "to_json"),
    "a plan from a list": (lambda: Plan.from_json("[]"), "to_json"),
    "a plan of an unknown aggregation": (lambda: Plan.from_json('{"aggregation":{"of":"mode"}}'), "to_json"),
    "a plan without its aggregation": (lambda: Plan.from_json('{"group_by":[]}'), "to_json"),
    "a plan of an unknown node": (lambda: Plan.from_json(COUNT + ',"where":{"op":"python"}}'), "to_json"),
    "a plan of half a node": (lambda: Plan.from_json(COUNT + ',"where":{"op":"and"}}'), "to_json"),
    "a plan of an unknown operator": (
        lambda: Plan.from_json(
            COUNT + ',"where":{"op":"compare","operator":"~","left":{"op":"column","name":"a"},'
            '"right":{"op":"literal","value":1}}}'
        ),
        "to_json",
    ),
    "a plan nested too deep": (
        lambda: Plan.from_json(COUNT + ',"where":' + '{"op":"not","inner":' * 20_000 + "1" + "}" * 20_001),
        "to_json",
    ),
    "a plan with keys that are no lists": (lambda: Plan.from_json(COUNT + ',"group_keys":["a"]}'), "to_json"),
    "a plan with limits that are none": (
        lambda: Plan.from_json(COUNT + ',"contribution_bounds":{"max_rows":"many"}}'),
        "to_json",
    ),
    "a plan from bytes that are no text": (lambda: Plan.from_json(b"\xff\xfe"), "to_json"),  # type: ignore[arg-type]
}

DECLARATIONS = {**TYPES, **BUDGETS, **TEXTS}


@pytest.mark.parametrize(("declare", "says"), DECLARATIONS.values(), ids=DECLARATIONS)
def test_a_declaration_that_breaks_a_rule_is_refused(declare: Callable[[], Any], says: str) -> None:
    assert_refused(declare, says)


def test_dates_may_end_with_the_calendar() -> None:
    frame = make(schema={"born": dpnb.Dates("1950-01-01", datetime.datetime.max)}).frame
    assert frame["born"].dt.year.mean().preview(mu=0.1).fits


def test_dates_of_numpy_are_dates() -> None:
    first, last = np.datetime64("1950-01-01", "ns"), np.datetime64("2000-12-31")
    assert DATES(first, last) == DATES("1950-01-01", "2000-12-31")


def leak() -> None:
    raise dpnb.errors.PlanError("visits: 87131 is above 10; clip it")


def chain() -> None:
    raise dpnb.errors.PlanError("visits: is above 10; clip it") from ValueError("row 3")


def chain_silently() -> None:
    try:
        int("row 3")
    except ValueError:
        raise dpnb.errors.PlanError("visits: is above 10; clip it")  # noqa: B904


def say_nothing() -> None:
    raise dpnb.errors.PlanError("bad value")


@pytest.mark.parametrize("refuse", [leak, chain, chain_silently, say_nothing, lambda: None, lambda: int("row 3")])
def test_the_check_of_these_tests_notices_a_bad_refusal(refuse: Callable[[], Any]) -> None:
    with pytest.raises((AssertionError, ValueError, pytest.fail.Exception)) as noticed:
        assert_refused(refuse)
    assert not isinstance(noticed.value, dpnb.errors.DpnbError)


def test_texts_that_cannot_be_discovered_are_named_when_the_session_is_made(tmp_path: Path) -> None:
    table = pd.DataFrame({"town": ["a"], "street": ["b"]})
    schema = {"town": dpnb.Text(), "street": dpnb.Text()}
    with pytest.warns(dpnb.errors.SchemaWarning, match=r"Text columns 'town', 'street' .*discovery_delta=1e-7") as told:
        dpnb.Session(table, name="a", budget=dpnb.Budget(1, 1e-6), schema=schema, ledger=tmp_path / "a.dpnb")
    assert told[0].filename == __file__
    with pytest.warns(dpnb.errors.SchemaWarning) as told:
        dpnb.Session.rehearse(name="a", budget=dpnb.Budget(1, 1e-6), schema=schema)
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        budget = dpnb.Budget(1, 1e-6, discovery_delta=1e-7)
        dpnb.Session(table, name="b", budget=budget, schema=schema, ledger=tmp_path / "b.dpnb")
