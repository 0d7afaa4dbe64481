"""The benchmark's questions in the words of Spark and of Dask, without privacy.

About persons three rows of each count, chosen after the filter: a window in Spark, and in Dask a shuffle by person.
"""

from __future__ import annotations

from typing import Any

from bench.measures.questions import COLUMNS, LEVELS, MOST


def of_spark(question: str, frame: Any, above: float, *, person: bool) -> Any:
    """The answer of Spark."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    kept = frame.where(f.col("x") > above)
    if question == "units":
        return kept.agg(f.countDistinct("person")).collect()
    if person and question != "discovered keys":
        place = f.row_number().over(Window.partitionBy("person").orderBy("x"))
        kept = kept.withColumn("place", place).where(f.col("place") <= MOST)
    if question == "count":
        return kept.count()
    if question in ("sum", "mean"):
        return kept.agg(getattr(f, question)("y")).collect()
    if question == "three quantiles":
        return kept.agg(f.percentile_approx("y", LEVELS)).collect()
    if question == "discovered keys":
        return (kept.select("word", "person").distinct() if person else kept).groupBy("word").count().collect()
    return kept.groupBy(COLUMNS[question][1]).agg(f.avg("y")).collect()


def of_dask(question: str, frame: Any, above: float, *, person: bool) -> Any:
    """The answer of Dask."""
    kept = frame[frame["x"] > above]
    if question == "units":
        return kept["person"].nunique().compute()
    if person:
        kept = kept[[*COLUMNS[question], "person"]].shuffle("person").map_partitions(_first_rows)
    if question == "count":
        return kept.shape[0].compute()
    if question in ("sum", "mean"):
        return getattr(kept["y"], question)().compute()
    if question == "three quantiles":
        return kept["y"].quantile(LEVELS).compute()
    if question == "discovered keys":
        return (kept.map_partitions(_distinct) if person else kept)["word"].value_counts().compute()
    return kept.groupby(COLUMNS[question][1])["y"].mean().compute()


def _first_rows(part: Any) -> Any:
    return part.groupby("person", sort=False).head(MOST)


def _distinct(part: Any) -> Any:
    return part.drop_duplicates()


PLAIN = {"spark": of_spark, "dask": of_dask}
