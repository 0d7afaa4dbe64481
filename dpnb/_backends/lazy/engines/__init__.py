"""The supported engines: one module for each, behind one base class.

``engine``  the base class: the operations that narwhals does not express for every engine
``polars``  lazy frames of polars
``duckdb``  relations of DuckDB; ``duckdb_plan`` their syntax trees, ``duckdb_settings`` what their user may not change
``spark``   data frames of Spark; ``spark_jobs`` their jobs, which an interrupt cancels
``plans``   causes of unstable plans, and plans as text
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
