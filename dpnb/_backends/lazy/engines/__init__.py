"""The supported engines, listed in `ENGINES`: one module for each, behind one base class.

``engine``  the base class: the operations that narwhals does not express for every engine, and causes of unstable plans
``polars``  lazy frames of polars
``duckdb``  relations of DuckDB, their syntax trees, and what their user may not change
``spark``   data frames of Spark, and their jobs, which an interrupt cancels
``ibis``    tables of Ibis: the relation of DuckDB, or an engine on one of these databases, which are not in `ENGINES`:
``guarded_sql``, ``sql``  the SQL of expressions, of which none fails, and of queries, on a connection of their own
``postgresql``, ``sqlite``  what differs between them
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
