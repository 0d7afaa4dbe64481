"""Data frames of Spark, on a cluster of two executors."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

from contracts.engines import TypedEngineContract
from dpnb.query.engine.native import Spark

sql = pytest.importorskip("pyspark.sql")

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(shutil.which("java") is None and "JAVA_HOME" not in os.environ, reason="Spark needs Java"),
]

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "ERROR",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}


@pytest.fixture(scope="module", autouse=True)
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A driver, a master, and two workers with one core each, all of them processes of their own."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["SPARK_WORKER_DIR"] = str(tmp_path_factory.mktemp("workers"))
    builder = sql.SparkSession.builder.master("local-cluster[2,1,1024]").appName("dpnb tests")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse"))).getOrCreate()
    yield session
    session.stop()


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning")
class TestSpark(TypedEngineContract):
    """A question takes Spark a second or more, so here there are fewer, of every kind."""

    engine = Spark
    every_unit = False
    modes = ("skip",)
    last = 5
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
        return sql.SparkSession.getActiveSession().createDataFrame(table)
