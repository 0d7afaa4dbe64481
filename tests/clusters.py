"""Clusters for tests, whose tables are small: most of what a cluster does for them is to start, and to compile."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""Of the time of a process that ends within a minute, the optimising compiler takes half, checking classes a tenth."""

SETTINGS = {
    "spark.driver.extraJavaOptions": JAVA,
    "spark.executor.extraJavaOptions": JAVA,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "ERROR",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def spark(master: str, settings: Mapping[str, str]) -> Any:
    """A session of Spark, with these settings too."""
    from pyspark.sql import SparkSession

    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master(master).appName("dpnb tests")
    return builder.config(map={**SETTINGS, **settings}).getOrCreate()


def dask() -> tuple[Any, Any]:
    """A cluster of Dask with two workers, each a process of its own, and a client of it."""
    import distributed

    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    return cluster, distributed.Client(cluster)
