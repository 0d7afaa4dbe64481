"""The engines in which tables may stay: one module for each, behind one base class.

``engine``       the base class: what every engine can do through narwhals alone, or has to say in its own way
``polars``       lazy frames of polars
``duckdb``       relations of DuckDB, and ``duckdb_plan``, their syntax tree
``spark``        data frames of Spark, and ``spark_jobs``, which an interrupt cancels
``plans``        what in a plan need not give the same rows each time
"""

from __future__ import annotations

import narwhals as nw

from dpnb._backends.lazy.engines.duckdb import DuckDB
from dpnb._backends.lazy.engines.engine import Engine
from dpnb._backends.lazy.engines.polars import Polars
from dpnb._backends.lazy.engines.spark import Spark

ENGINES: dict[nw.Implementation, Engine] = {
    nw.Implementation.POLARS: Polars(),
    nw.Implementation.DUCKDB: DuckDB(),
    nw.Implementation.PYSPARK: Spark(),
    nw.Implementation.PYSPARK_CONNECT: Spark(),
}
