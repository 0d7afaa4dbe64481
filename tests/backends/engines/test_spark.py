"""Data frames of Spark, on a cluster whose executor runs two tasks at a time."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import clusters
import dpnb
from contracts.engines import TypedEngineContract
from contracts.plans import TABLE, Plans, judged, opened
from dpnb._backends.lazy.engines import Spark
from dpnb.errors import InvalidValueError, SchemaError

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(shutil.which("java") is None and "JAVA_HOME" not in os.environ, reason="Spark needs Java"),
]


@pytest.fixture(scope="module", autouse=True)
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A driver with a master and a worker, and an executor with two cores, which is a process of its own.

    A second executor would start, and compile all that is generated, for itself: a quarter of the time of these tests.
    """
    os.environ["SPARK_WORKER_DIR"] = str(tmp_path_factory.mktemp("workers"))
    settings = {
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    session = clusters.spark("local-cluster[1,2,1024]", settings, tmp_path_factory.mktemp("installed"))
    yield session
    session.stop()


def active() -> Any:
    """The session that `cluster` has started."""
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning")
class TestSpark(TypedEngineContract):
    """A question takes Spark a second or more, so here there are fewer, of every kind."""

    engine = Spark
    every_unit = False
    every_window = 20
    zoned = ("a", "o")  # its times without a zone are refused
    every_zoned = 20
    modes = ("skip",)
    whole_logarithms = False
    last = 4
    asked = (
        "mean",
        "by two",
        "units by category",
        "standard deviation",
        "by given texts",
        "or",
        "found pairs",
        "by year",
        "cut",
        "lookup",
    )

    def native(self, table: pd.DataFrame) -> Any:
        return active().createDataFrame(table)

    def opened(self, *table: Any) -> tuple[Any, Any]:
        """The rows that count are chosen once, and not for every question as where a session asks."""
        here, there = super().opened(*table)
        rows = there.rows("")
        there._kept[""] = replace(rows, frame=there.engine.kept(rows.frame)) if rows.has_units else rows
        return here, there


def spark_plans() -> Plans:
    from pyspark.sql import Window
    from pyspark.sql import functions as spark

    session = active()
    frame = session.createDataFrame([(1.0, "a"), (2.0, "b")], "x double, s string")
    unstable = {
        "random": (frame.filter("s <> 'secret'").withColumn("r", spark.rand(1)), "a random or volatile"),
        "sequence": (frame.withColumn("n", spark.monotonically_increasing_id()), "a random or volatile"),
        "sample": (frame.sample(0.5), "a random or volatile"),
        "limit": (frame.limit(1), "a limit"),
        "deep": (frame.limit(1).union(frame).sort("x"), "a limit"),
        "offset": (frame.offset(1), "a limit"),
        "any of several": (frame.dropDuplicates(["s"]), "one row kept"),
        "now": (frame.withColumn("n", spark.current_timestamp()), "the current time"),
    }
    stable = {
        "in order": frame.sort("x").select("x").limit(1),
        "distinct": frame.distinct(),
        "row number": frame.withColumn("n", spark.row_number().over(Window.partitionBy("s").orderBy("x"))),
    }
    return unstable, stable


@pytest.mark.filterwarnings("ignore")
def test_an_unstable_plan_is_refused_and_a_stable_one_is_not(tmp_path: Path) -> None:
    judged(spark_plans(), tmp_path)


@pytest.mark.filterwarnings("ignore")
def test_a_changed_file_needs_a_new_version(tmp_path: Path) -> None:
    file, ledger = tmp_path / "a b.parquet", tmp_path / "files.dpnb"
    TABLE.to_parquet(file)
    session = opened(active().read.parquet(str(file)), ledger)
    session.frame.count().release(mu=0.1)
    before = session.spent
    os.utime(file)
    with pytest.raises(InvalidValueError, match="nothing was charged"):
        session.frame["x"].sum().release(mu=0.1)
    assert session.spent == before


PEOPLE = "who string collate UTF8_LCASE, x double, t string collate UTF8_LCASE, day date"


def people(rows: list[tuple[str, float]]) -> dpnb.Session:
    """A session on rows of persons, whose names and texts have a collation that ignores the case."""
    table = active().createDataFrame([(name, x, name, date(2020, 1, 1)) for name, x in rows], PEOPLE)
    schema = {
        "x": dpnb.Bounded(-10, 10),
        "t": dpnb.Text(max_length=5),
        "day": dpnb.Dates("2019-12-31", "2020-01-03"),
    }
    unit: dict[str, Any] = {"privacy_unit": "who", "max_rows_per_unit": 1}
    return dpnb.Session(table, name="p", budget=dpnb.Budget.gdp(9), schema=schema, ledger=":memory:", **unit)


def exact(session: dpnb.Session, query: Any) -> list[int]:
    tables = session._core.tables
    sums: list[int] = tables.opened.sums(tables.compile(query(session.frame).plan)).tolist()
    return sums


@pytest.mark.filterwarnings("ignore")
def test_only_equal_bytes_are_one_person_or_one_text() -> None:
    """Without the person ANN the sum is lower by at most the bound of 10, not by 20."""
    session = people([("ann", -10.0), ("bob", 0.0), ("ANN", 10.0)])
    assert exact(session, lambda f: f["x"].sum()) == [0]
    assert exact(session, lambda f: f.groupby("t", keys=["ann", "ANN", "Ann"]).count()) == [1, 1, 0]


@pytest.mark.filterwarnings("ignore")
def test_a_date_is_the_same_day_in_each_time_zone() -> None:
    active().conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        session = people([("ann", 1.0)])
        assert exact(session, lambda f: f[f["day"] <= "2020-01-01"].count()) == [1]
    finally:
        active().conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.filterwarnings("ignore")
def test_functions_of_the_session_take_the_place_of_none_of_spark() -> None:
    """Without the setting this function, which would give every person the same number, is not used."""
    session = people([("ann", 1.0), ("bob", 1.0)])
    active().udf.register("md5", lambda text: "0" * 32, "string")
    number = exact(session, lambda f: f["x"].sum())
    active().conf.set("spark.sql.functionResolution.sessionOrder", "first")
    try:
        with pytest.raises(SchemaError, match=r"Spark session: .*sessionOrder"):
            session.frame.count().release(mu=1)
        assert not len(session.log)
    finally:
        active().conf.unset("spark.sql.functionResolution.sessionOrder")
    assert exact(session, lambda f: f["x"].sum()) == number
