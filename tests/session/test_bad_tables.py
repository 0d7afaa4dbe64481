"""Several tables, and joins of them or with public tables: what has no shared unit or no single key is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

import dpnb
from session.bad_input import Case, assert_refused, assert_refused_free, kept, make, make_table

VISITS = {"visits": dpnb.Bounded(0, 10), "town": dpnb.Categories(["north", "south"]), "street": dpnb.Text()}
PAID = {"income": dpnb.Bounded(0, 100), "town": dpnb.Categories(["north", "south"])}
BOTH = {"visited": VISITS, "paid": PAID}


def make_both(**changes: Any) -> dpnb.Session:
    tables = changes.pop("tables", {"visited": make_table(), "paid": make_table()})
    return make(**{"table": tables, "schema": BOTH, **changes})


DECLARED: dict[str, tuple[dict[str, Any], str]] = {
    "columns for a mapping of tables": ({"schema": VISITS}, "each table's name"),
    "tables for a single table": ({"tables": make_table()}, "schema"),
    "no tables": ({"tables": {}, "schema": {}}, "schema"),
    "a table missing": ({"tables": {"visited": make_table()}}, "'visited', 'paid'; got 'visited'"),
    "a table too many": (
        {"tables": {"visited": make_table(), "paid": make_table(), "third": make_table()}},
        "got 'visited', 'paid', 'third'",
    ),
    "a table misspelt": ({"tables": {"visited": make_table(), "payed": make_table()}}, "got 'visited', 'payed'"),
    "a table nothing": ({"tables": {"visited": make_table(), "paid": None}}, "table 'paid'.*data frame"),
    "a table a list": ({"tables": {"visited": make_table(), "paid": [1, 2]}}, "table 'paid'.*data frame"),
    "a table a path": ({"tables": {"visited": make_table(), "paid": "paid.csv"}}, "table 'paid'.*data frame"),
    "no privacy unit": ({"privacy_unit": None, "max_rows_per_unit": None}, "name the column that they share"),
    "a privacy unit of each table": (
        {"privacy_unit": {"visited": "person", "paid": "person"}},
        "must be a column name",
    ),
    "a privacy unit that one table lacks": (
        {"tables": {"visited": make_table(), "paid": make_table().drop(columns="person")}},
        "'paid'",
    ),
    "a privacy unit in one schema": (
        {"schema": {**BOTH, "paid": {**PAID, "person": dpnb.Text()}}},
        "leave it out of the schema",
    ),
    "a column missing": ({"schema": {**BOTH, "paid": {"hight": dpnb.Bounded(0, 1)}}}, "'paid'"),
    "a table without columns": ({"schema": {**BOTH, "paid": {}}}, "at least one column"),
    "a table with a bare type": ({"schema": {**BOTH, "paid": dpnb.Bounded(0, 1)}}, "each table's name"),
    "a table with a bare tuple": ({"schema": {**BOTH, "paid": {"income": (0, 1)}}}, r"schema\['income'\]"),
    "a table's name empty": (
        {"tables": {"": make_table(), "paid": make_table()}, "schema": {"": VISITS, "paid": PAID}},
        "a table's name",
    ),
    "a table's name a number": (
        {"tables": {1: make_table(), 2: make_table()}, "schema": {1: VISITS, 2: PAID}},
        "a table's name",
    ),
    "rows without a limit": ({"max_rows_per_unit": None}, "max_rows_per_unit: required"),
    "rows of one table without a limit": ({"max_rows_per_unit": {"visited": 2}}, "max_rows_per_unit: required"),
    "rows of an unknown table": (
        {"max_rows_per_unit": {"visited": 2, "payed": 2}},
        "max_rows_per_unit: 'payed' is not one of the tables",
    ),
    "rows of one table zero": ({"max_rows_per_unit": {"visited": 2, "paid": 0}}, "whole number"),
    "groups of an unknown table": (
        {"max_groups_per_unit": {"payed": 2}},
        "max_groups_per_unit: 'payed' is not one of the tables",
    ),
    "norm of one table negative": ({"max_norm_per_unit": {"paid": -1}}, "between"),
}


@pytest.mark.parametrize(("changes", "says"), DECLARED.values(), ids=DECLARED)
def test_tables_that_do_not_fit_their_schema_are_refused(changes: dict[str, Any], says: str) -> None:
    assert_refused(lambda: make_both(**changes), says)


@kept
def both_tables() -> dpnb.Session:
    return make_both()


@kept
def other() -> dpnb.Session:
    return make_both(name="other")


@kept
def one_table() -> dpnb.Session:
    return make(name="one")


@kept
def row_units() -> dpnb.Session:
    return make(name="rows", privacy_unit=None, max_rows_per_unit=None)


@kept
def many_pairs() -> dpnb.Session:
    return make_both(name="long", max_rows_per_unit=2**20)


@kept
def uncounted() -> dpnb.Session:
    return make_both(name="uncounted", max_rows_per_unit={"visited": 2}, max_norm_per_unit={"paid": 1.0})


def joined(session: dpnb.Session, **arguments: Any) -> Any:
    return session.table("visited").merge(session.table("paid"), **{"on": "person", **arguments})


PRIVATE: dict[str, Case] = {
    "the frame of several tables": (lambda s: s.frame, r"session\.table"),
    "an unknown table": (lambda s: s.table("payed"), "the tables are 'visited', 'paid'"),
    "a table by number": (lambda s: s.table(0), "the tables are 'visited', 'paid'"),
    "tables by a list": (lambda s: s.table(["visited"]), "the tables are 'visited', 'paid'"),
    "a name at a session of one table": (lambda s: one_table().table("visited"), r"\.frame|none of"),
    "a column of the other table": (lambda s: s.table("visited")["income"], "its columns are"),
    "a sum over two tables": (lambda s: s.table("visited")["visits"] + s.table("paid")["income"], "merge"),
    "a comparison over two tables": (lambda s: s.table("visited")["visits"] > s.table("paid")["income"], "merge"),
    "rows by the other table": (lambda s: s.table("visited")[s.table("paid")["income"] > 1], "same table"),
    "a column's rows by the other table": (
        lambda s: s.table("visited")["visits"][s.table("paid")["income"] > 1],
        "same table",
    ),
    "a correlation over two tables": (
        lambda s: s.table("visited")["visits"].corr(s.table("paid")["income"]),
        "merge",
    ),
    "groups by the other table": (lambda s: s.table("visited").groupby(s.table("paid")["town"]), "same table"),
    "agg of the other table": (
        lambda s: s.table("visited").agg(n=(s.table("paid")["town"], "count")),
        "same table|one table",
    ),
    "regress on the other table": (
        lambda s: s.table("visited").regress("visits", on=s.table("paid")["town"]),
        "same table|one table",
    ),
    "merge of another session": (
        lambda s: s.table("visited").merge(other().table("paid"), on="person"),
        "same session",
    ),
    "merge on nothing": (lambda s: joined(s, on=None), "privacy unit, on='person'"),
    "merge on another column": (lambda s: joined(s, on="town"), "privacy unit, on='person'.*compare"),
    "merge on the unit and more": (lambda s: joined(s, on=["person", "town"]), "compare further columns"),
    "merge left": (lambda s: joined(s, how="left"), "how='inner'"),
    "merge outer": (lambda s: joined(s, how="outer"), "how='inner'"),
    "merge by a list of ways": (lambda s: joined(s, how=["inner"]), "how='inner'"),
    "merge without suffixes": (lambda s: joined(s, suffixes=("", "")), "choose other suffixes="),
    "merge with one suffix twice": (lambda s: joined(s, suffixes=("_a", "_a")), "choose other suffixes="),
    "merge with a suffix that is taken": (
        lambda s: (
            s.table("visited").assign(town_y=s.table("visited")["visits"]).merge(s.table("paid"), on="person")["town_y"]
        ),
        "suffixes=",
    ),
    "merge with suffixes in one text": (lambda s: joined(s, suffixes="ab"), "suffixes"),
    "merge with one suffix": (lambda s: joined(s, suffixes=("_x",)), "suffixes"),
    "merge with suffixes nothing": (lambda s: joined(s, suffixes=(None, "_y")), "suffixes"),
    "merge of limited tables": (
        lambda s: s.table("visited").bound_contributions(max_rows_per_unit=1).merge(s.table("paid"), on="person"),
        "bound_contributions.* the join",
    ),
    "merge of rows that are units": (lambda s: row_units().frame.merge(row_units().frame, on="person"), "unit"),
    "merge of rows that are units, on nothing": (lambda s: row_units().frame.merge(row_units().frame, on=None), "unit"),
    "merge with too many pairs": (lambda s: joined(many_pairs()).count(), "pairs of rows"),
    "merge of uncounted rows": (lambda s: joined(uncounted()).count(), "max_rows_per_unit= for both"),
    "a column that the merge renamed": (lambda s: joined(s)["town"], "did you mean 'town_[xy]'"),
    "a column of one side in the merge": (lambda s: joined(s)[s.table("paid")["income"] > 1], "same table"),
}


@pytest.mark.parametrize(("ask", "says"), PRIVATE.values(), ids=PRIVATE)
def test_a_question_over_tables_that_do_not_belong_together_is_refused(ask: Any, says: str) -> None:
    assert_refused_free(both_tables(), lambda: ask(both_tables()), says)


REGIONS = pd.DataFrame({"town": ["north", "south"], "region": ["up", "down"], "rent": [700.0, 500.0]})


def public(**changes: Any) -> pd.DataFrame:
    """A public table with other columns."""
    return pd.DataFrame({**REGIONS.to_dict("list"), **changes})


PUBLIC: dict[str, Case] = {
    "no table": (lambda f: f.merge([1, 2], on="town"), "a public data frame"),
    "nothing": (lambda f: f.merge(None, on="town"), "a public data frame"),
    "a mapping": (lambda f: f.merge({"town": ["north"]}, on="town"), "a public data frame"),
    "a column of this table": (lambda f: f.merge(f["town"], on="town"), "a public data frame|private"),
    "an answer": (lambda f: f.merge(f.count(), on="town"), "a public data frame"),
    "a series": (lambda f: f.merge(REGIONS["region"], on="town"), "a public data frame"),
    "groups": (lambda f: f.merge(f.groupby("town"), on="town"), "a public data frame|groups"),
    "without on": (lambda f: f.merge(REGIONS), "different key columns"),
    "on an empty list": (lambda f: f.merge(REGIONS, on=[]), "different key columns"),
    "on a tuple": (lambda f: f.merge(REGIONS, on=("town",)), "different key columns"),
    "on a number": (lambda f: f.merge(REGIONS, on=3), "different key columns"),
    "on an unknown column": (lambda f: f.merge(REGIONS, on="hight"), "the key 'hight' is not in this view"),
    "on a column of one": (lambda f: f.merge(REGIONS, on="grade"), "the public table has no column 'grade'"),
    "on the privacy unit": (
        lambda f: f.merge(public(person=["a", "b"]), on="person"),
        "the key 'person' is not in this view",
    ),
    "on one column twice": (lambda f: f.merge(REGIONS, on=["town", "town"]), "different key columns"),
    "on a list in a list": (lambda f: f.merge(REGIONS, on=[["town"]]), "key"),
    "right": (lambda f: f.merge(REGIONS, on="town", how="right"), "'inner' or 'left'"),
    "outer": (lambda f: f.merge(REGIONS, on="town", how="outer"), "'inner' or 'left'"),
    "how nothing": (lambda f: f.merge(REGIONS, on="town", how=None), "'inner' or 'left'"),
    "how a list": (lambda f: f.merge(REGIONS, on="town", how=["inner"]), "'inner' or 'left'"),
    "duplicate keys": (lambda f: f.merge(public(town=["north", "north"]), on="town"), "drop or aggregate"),
    "keys equal across types": (lambda f: f.merge(public(grade=[1, 1.0]), on="grade"), "drop or aggregate"),
    "text keys equal across types": (
        lambda f: f.merge(public(street=pd.Series(["7", 7], dtype=object)), on="street"),
        "drop or aggregate",
    ),
    "no keys": (lambda f: f.merge(public(town=[None, None]), on="town"), "each key"),
    "no rows": (lambda f: f.merge(REGIONS.iloc[:0], on="town"), "."),
    "too many rows": (lambda f: f.merge(pd.DataFrame({"grade": range(100_001)}), on="grade"), "100,000"),
    "an empty column": (lambda f: f.merge(public(region=[None, None]), on="town"), "drop it"),
    "a mixed column": (lambda f: f.merge(public(region=["up", 3]), on="town"), "only numbers or only strings"),
    "a column of lists": (lambda f: f.merge(public(region=[[1], [2]]), on="town"), "column 'region'"),
    "a column of objects": (lambda f: f.merge(public(region=[object(), object()]), on="town"), "column 'region'"),
    "a column of huge numbers": (lambda f: f.merge(public(region=[2**70, 1]), on="town"), "column 'region'"),
    "a key that is a number with fractions": (lambda f: f.merge(public(visits=[1, 2]), on="visits"), "looked up"),
    "a key that is a date": (lambda f: f.merge(public(born=["1960-01-01", "1970-01-01"]), on="born"), "looked up"),
    "a column there twice": (
        lambda f: f.merge(pd.concat([REGIONS, REGIONS[["rent"]]], axis=1), on="town"),
        "rent|more than once",
    ),
    "a name that is taken by a suffix": (
        lambda f: f.merge(public(visits=[1, 2], visits_x=[3, 4]), on="town"),
        "suffixes=",
    ),
    "suffixes that do not differ": (
        lambda f: f.merge(public(visits=[1, 2]), on="town", suffixes=("", "")),
        "suffixes=",
    ),
    "suffixes nothing": (lambda f: f.merge(public(visits=[1, 2]), on="town", suffixes=None), "suffixes"),
    "a column named by a number": (lambda f: f.merge(REGIONS.rename(columns={"rent": 3}), on="town"), "name"),
    "what only looks like a table": (lambda f: f.merge(SimpleNamespace(columns=["town"]), on="town"), "data frame"),
    "a sum of looked up texts": (lambda f: f.merge(REGIONS, on="town")["region"].sum(), "needs a number"),
    "an unknown looked up text": (lambda f: f.merge(REGIONS, on="town")["region"] == "left", "the categories are"),
}


@pytest.mark.parametrize(("ask", "says"), PUBLIC.values(), ids=PUBLIC)
def test_a_public_table_without_one_row_for_each_key_is_refused(ask: Any, says: str) -> None:
    assert_refused_free(one_table(), lambda: ask(one_table().frame), says)


TABLES = {"private": PRIVATE, "public": PUBLIC}


def subject(name: str) -> Any:
    return both_tables() if name == "private" else one_table().frame
