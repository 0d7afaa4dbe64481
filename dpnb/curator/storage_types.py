"""The storage type of each column, as the file of a table states it; no row is read.

Parquet and Arrow files state the type of each column.  A text file states none: a reader infers it from the rows, so
that one value could decide it.  pandas does the same where it reads integers with a null as doubles.  So the types here
come from the file's own schema, and are unknown where it has none.
"""

from __future__ import annotations

from pathlib import Path

import narwhals as nw

from dpnb._backends.column_types import StorageType, storage_type_of, storage_type_of_arrow
from dpnb.session.table_files import ARROW, PARQUET, format_of

StorageTypes = dict[str, StorageType | None]


def storage_types(path: str) -> StorageTypes:
    """The storage types that a file states, by column; empty if it states none.

    The file is one that `dpnb.session.table_files` can read.
    """
    file = Path(path)
    kind = format_of(file)
    if kind not in (PARQUET, *ARROW):
        return {}
    try:
        from pyarrow import dataset
    except ImportError:
        return _of_polars(file) if kind == PARQUET else {}
    try:
        schema = dataset.dataset(file, format="parquet" if kind == PARQUET else "ipc").schema
    except Exception:  # noqa: BLE001  (an old format, such as Feather 1, which only pandas reads)
        return {}
    return {field.name: storage_type_of_arrow(field.type) for field in schema}


def _of_polars(file: Path) -> StorageTypes:
    try:
        import polars as pl
    except ImportError:
        return {}
    schema = pl.scan_parquet(sorted(file.rglob(f"*{PARQUET}")) if file.is_dir() else file).collect_schema()
    empty = nw.from_native(pl.DataFrame(schema=schema), eager_only=True)
    return {name: storage_type_of(dtype) for name, dtype in empty.schema.items()}
