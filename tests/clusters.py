"""Clusters for tests, whose tables are small: most of what a cluster does for them is to start, and to compile."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""Of the time of a process that ends within a minute, the optimising compiler takes half, checking classes a tenth."""

UNUSED = (
    *("aircompressor", "algebra", "antlr-runtime", "arpack", "blas", "breeze", "cats", "curator", "datanucleus"),
    *("derby", "hive", "hk2", "http", "jaxb", "jdo", "jersey", "jjwt", "jline", "kubernetes", "lapack", "libthrift"),
    *("netty-tcnative", "orc", "scala-compiler", "spark-connect", "spark-graphx", "spark-hive"),
    *("spark-kubernetes", "spark-mllib", "spark-pipelines", "spark-repl", "spark-streaming", "spark-yarn", "spire"),
    *("tink", "vertx", "volcano", "zookeeper"),
)
"""What the names of those archives of Spark begin with that data frames do not use.

Each name in code that Spark generates is looked for in all archives, in packages too where it is not: with all archives
this takes a quarter of the time of an executor.
"""

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


def _look_up_once(kind: Any) -> None:
    """Let Python ask the JVM only once for each class, and for each method of it.

    PySpark asks again for each column and each literal, which is a third of what Python and the JVM say to each other.
    For a class that is named without its package the JVM looks in all archives.
    """
    asked = kind.__getattr__

    def found(self: Any, name: str) -> Any:
        value = asked(self, name)
        if type(value).__name__ in ("JavaClass", "JavaMember"):  # and not a field, whose value may change
            vars(self)[name] = value
        return value

    kind.__getattr__ = found


def spark(master: str, settings: Mapping[str, str], folder: Path) -> Any:
    """A session of Spark, with these settings too, whose archives are linked into a folder of the test."""
    import pyspark
    from py4j.java_gateway import JavaClass, JVMView
    from pyspark.sql import SparkSession

    for kind in (JavaClass, JVMView):
        _look_up_once(kind)

    installed, used = Path(pyspark.__file__).parent, folder / "spark" / "jars"
    used.mkdir(parents=True)
    (used.parent / "bin").symlink_to(installed / "bin")
    for archive in installed.joinpath("jars").glob("*.jar"):
        if not archive.name.startswith(UNUSED):
            (used / archive.name).symlink_to(archive)
    os.environ["SPARK_HOME"] = str(used.parent)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master(master).appName("dpnb tests")
    return builder.config(map={**SETTINGS, **settings}).getOrCreate()


def dask() -> tuple[Any, Any]:
    """A cluster of Dask with two workers, each a process of its own, and a client of it."""
    import distributed

    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    return cluster, distributed.Client(cluster)
