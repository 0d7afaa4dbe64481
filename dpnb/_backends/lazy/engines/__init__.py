"""The supported engines, listed in `ENGINES`: one module for each, behind one base class.

Tables of Ibis are the relation of DuckDB, or have an engine on one of the databases of ``ibis``, which are not in
`ENGINES`: these compute through SQL, on a connection of their own.
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
