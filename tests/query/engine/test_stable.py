"""What an engine's plan shows to be different each time is refused; what merely looks like it is not."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpnb
from dpnb.errors import SchemaError

TABLE = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "s": ["a", "a", "b", "b"]})


def opened(table: Any, ledger: Path) -> dpnb.Session:
    schema = {"x": dpnb.Bounded(0, 6)}
    return dpnb.Session(table, name="plan", budget=dpnb.Budget.gdp(1), schema=schema, ledger=ledger)


def refused(table: Any, what: str, ledger: Path) -> None:
    with pytest.raises(SchemaError, match=f"its plan has {what}.*into a file") as error:
        opened(table, ledger)
    assert "secret" not in str(error.value)
    assert not ledger.exists()


def polars_plans() -> tuple[dict[str, tuple[Any, str]], dict[str, Any]]:
    import polars as pl

    frame, x = pl.from_pandas(TABLE).lazy(), pl.col("x")
    unstable = {
        "sample": (frame.select(x.sample(2)), "something random"),
        "random filter": (frame.filter(x.shuffle() > 2).filter(pl.col("s") != "secret"), "something random"),
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


def duckdb_plans() -> tuple[dict[str, tuple[Any, str]], dict[str, Any]]:
    import duckdb

    con = duckdb.connect()
    con.register("given", TABLE)
    con.execute("create table t as select * from given")
    con.execute("create view noisy as select x + random() as x from t")
    con.execute("create view outer_view as (select * from noisy)")
    con.execute("create macro jitter(a) as a + random()")
    con.execute("create macro few(n) as table select * from t limit 2")
    con.execute("create sequence numbers")
    con.execute("create view calm as select x from t order by x limit 3")
    table = con.table("t")
    unstable = {
        "random": (con.sql("select x + random() as x from t where s <> 'secret'"), "something random"),
        "a view of a view": (con.view("outer_view"), "something random"),
        "a macro": (con.sql("select jitter(x) as x from t"), "something random"),
        "a table macro": (con.sql("from few(2)"), "a limit"),
        "a sequence": (con.sql("select nextval('numbers') as n, x from t"), "something random"),
        "uuid": (con.sql("select uuid() as n, x from t"), "something random"),
        "sample": (con.sql("from t using sample 2"), "something random"),
        "sample of a table": (con.sql("from t tablesample 50%"), "something random"),
        "limit": (table.filter("x > 0").limit(2), "a limit"),
        "in a part": (con.sql("with a as (from t limit 2) select * from a order by x"), "a limit"),
        "any of several": (con.sql("select distinct on (s) * from t"), "one row kept"),
        "any value": (con.sql("select any_value(x) as x from t group by s"), "one row kept"),
        "row number": (con.sql("select row_number() over () as n, x from t"), "numbers of rows"),
        "now": (con.sql("select x from t where now() > '2020-01-01'"), "the present time"),
        "today": (con.sql("select x from t where current_date > '2020-01-01'"), "the present time"),
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
        "functions": con.sql("select sqrt(x) as x, lower(s) as s, hash(s) as h from t"),
    }
    return unstable, stable


def spark_plans() -> tuple[dict[str, tuple[Any, str]], dict[str, Any]]:
    from pyspark.sql import SparkSession, Window
    from pyspark.sql import functions as spark

    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = builder.config("spark.log.level", "OFF").config("spark.driver.host", "127.0.0.1").getOrCreate()
    frame = session.createDataFrame([(1.0, "a"), (2.0, "b")], "x double, s string")
    unstable = {
        "random": (frame.filter("s <> 'secret'").withColumn("r", spark.rand(1)), "something random"),
        "sequence": (frame.withColumn("n", spark.monotonically_increasing_id()), "something random"),
        "sample": (frame.sample(0.5), "something random"),
        "limit": (frame.limit(1), "a limit"),
        "deep": (frame.limit(1).union(frame).sort("x"), "a limit"),
        "offset": (frame.offset(1), "a limit"),
        "any of several": (frame.dropDuplicates(["s"]), "one row kept"),
        "now": (frame.withColumn("n", spark.current_timestamp()), "the present time"),
    }
    stable = {
        "in order": frame.sort("x").select("x").limit(1),
        "distinct": frame.distinct(),
        "row number": frame.withColumn("n", spark.row_number().over(Window.partitionBy("s").orderBy("x"))),
    }
    return unstable, stable


Plans = Callable[[], tuple[dict[str, tuple[Any, str]], dict[str, Any]]]


def judged(plans: Plans, folder: Path) -> None:
    unstable, stable = plans()
    for number, (table, what) in enumerate(unstable.values()):
        refused(table, what, folder / f"refused {number}.dpnb")
    for name, table in stable.items():
        assert opened(table, folder / f"{name}.dpnb").ledger.count == 0, name


@pytest.mark.parametrize(("name", "plans"), [("polars", polars_plans), ("duckdb", duckdb_plans)])
def test_an_unstable_plan_is_refused_and_a_stable_one_is_not(name: str, plans: Plans, tmp_path: Path) -> None:
    pytest.importorskip(name)
    judged(plans, tmp_path)


@pytest.mark.spark
@pytest.mark.skipif(shutil.which("java") is None and "JAVA_HOME" not in os.environ, reason="Spark needs Java")
@pytest.mark.filterwarnings("ignore")
def test_an_unstable_plan_of_spark_is_refused_and_a_stable_one_is_not(tmp_path: Path) -> None:
    pyspark = pytest.importorskip("pyspark.sql")
    try:
        judged(spark_plans, tmp_path)
    finally:
        pyspark.SparkSession.getActiveSession().stop()
