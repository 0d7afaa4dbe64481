"""What an engine's plan shows to be different each time is refused; what merely looks like it is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from contracts.plans import TABLE, Plans, judged


def polars_plans() -> Plans:
    import polars as pl

    frame, x = pl.from_pandas(TABLE).lazy(), pl.col("x")
    unstable = {
        "sample": (frame.select(x.sample(2)), "a random or volatile"),
        "random filter": (frame.filter(x.shuffle() > 2).filter(pl.col("s") != "secret"), "a random or volatile"),
        "deep": (frame.join(frame.head(1), on="s").sort("x"), "a limit"),
        "head": (frame.head(2), "a limit"),
        "slice": (frame.slice(1, 2), "a limit"),
        "head of a column": (frame.select(x.head(2)), "a limit"),
        "any of several": (frame.unique(subset="s"), "one row kept"),
        "row index": (frame.group_by("s").agg(x.sum()).with_row_index("n"), "numbers of rows"),
    }
    stable = {
        "in order": frame.sort("x").head(2),
        "in order, then fewer columns": frame.sort("x").select("x").head(2),
        "distinct": frame.unique(),
        "first of several": frame.unique(subset="s", keep="first", maintain_order=True),
        "row index": frame.with_row_index("n"),
        "words": frame.filter(pl.col("s") != "x.sample(2) SLICE["),
        "a column's name": frame.with_columns(pl.lit(1.0).alias("x.shuffle(")),
        "by text": frame.filter(pl.col("s").str.slice(0, 1) == "a"),
    }
    return unstable, stable


def duckdb_plans() -> Plans:
    import duckdb

    con = duckdb.connect()
    con.register("given", TABLE)
    con.execute("create table t as select * from given")
    con.execute("create view noisy as select x + random() as x from t")
    con.execute("create view outer_view as (select * from noisy)")
    con.execute("create macro jitter(a) as a + random()")
    con.execute("create macro few(n) as table select * from t limit 2")
    con.execute("create macro noise(a) as a + random(), (a, b) as a + b")
    con.execute("create schema other")
    con.execute("create view other.noisy as select x from t")
    con.execute("create sequence numbers")
    con.execute("create view numbered as select nextval('numbers') as n, x from t")
    con.execute("create view calm as select x from t order by x limit 3")
    table = con.table("t")
    unstable = {
        "random": (con.sql("select x + random() as x from t where s <> 'secret'"), "a random or volatile"),
        "a view of a view": (con.view("outer_view"), "a random or volatile"),
        "a macro": (con.sql("select jitter(x) as x from t"), "a random or volatile"),
        "an overload of a macro": (con.sql("select noise(x) as x from t"), "a random or volatile"),
        "a table macro": (con.sql("from few(2)"), "a limit"),
        "a sequence": (con.view("numbered"), "a random or volatile"),
        "uuid": (con.sql("select uuid() as n, x from t"), "a random or volatile"),
        "sample": (con.sql("from t using sample 2"), "a random or volatile"),
        "sample of a table": (con.sql("from t tablesample 50%"), "a random or volatile"),
        "limit": (table.filter("x > 0").limit(2), "a limit"),
        "in a part": (con.sql("with a as (from t limit 2) select * from a order by x"), "a limit"),
        "any of several": (con.sql("select distinct on (s) * from t"), "one row kept"),
        "any value": (con.sql("select any_value(x) as x from t group by s"), "one row kept"),
        "row number": (con.sql("select row_number() over () as n, x from t"), "numbers of rows"),
        "now": (con.sql("select x from t where now() > '2020-01-01'"), "the current time"),
        "today": (con.sql("select x from t where current_date > '2020-01-01'"), "the current time"),
        "a view named in a text": (con.sql("from query_table('noisy')"), "a query or the name of a table"),
        "a query in a text": (con.sql("select x from query('select random() as x')"), "a query or the name of a table"),
        "a query in JSON": (
            con.sql("select x from json_execute_serialized_sql(json_serialize_sql('select random() as x'))"),
            "a query or the name of a table",
        ),
        "values of a view": (con.sql("select count as x from histogram('noisy', x)"), "a query or the name of a table"),
        "age today": (
            con.sql("select x from t where age(timestamp '2020-01-01') > interval 1 day"),
            "the current time",
        ),
    }
    stable = {
        "table": table,
        "in order": table.order("x").limit(2),
        "a view": con.view("calm"),
        "row number": con.sql("select row_number() over (order by x) as n, x from t"),
        "first in order": con.sql("select first(x order by x) as x from t group by s"),
        "words": con.sql("select x, 'random() limit 3' as w from t"),
        "a data frame": con.from_df(TABLE),
        "put there once": con.sql("select x + random() as x from t").materialize(),
        "between times": con.sql(
            "select x from t where age(timestamp '2020-01-01', timestamp '2019-01-01') is not null"
        ),
        "times with a time zone": con.sql("select x + year(timestamptz '2020-01-01 00:00:00+00') as x from t"),
        "values of a column": con.sql("select cardinality(histogram(x))::int as x from t"),
        "functions": con.sql("select sqrt(x) as x, lower(s) as s, hash(s) as h from t"),
    }
    return unstable, stable


@pytest.mark.parametrize(("name", "plans"), [("polars", polars_plans), ("duckdb", duckdb_plans)])
def test_an_unstable_plan_is_refused_and_a_stable_one_is_not(
    name: str, plans: Callable[[], Plans], tmp_path: Path
) -> None:
    pytest.importorskip(name)
    judged(plans(), tmp_path)
