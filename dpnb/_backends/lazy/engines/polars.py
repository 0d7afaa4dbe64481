"""The engine polars: its lazy frames, and what of a plan makes its rows unstable."""

from __future__ import annotations

import glob
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from dpnb._backends.contribution import label_hash
from dpnb._backends.lazy.engines.engine import (
    LIMB,
    LIMITED,
    NUMBERED,
    ONE_OF_SEVERAL,
    RANDOM,
    ROWS_AT_ONCE,
    InProcessEngine,
    LazyFrame,
    Paths,
    folded,
    inputs_of,
    lines_of,
    opened,
    squared,
)
from dpnb._backends.worker_thread import refuse_stopped
from dpnb._plan.expressions.letters import LETTERS, Case


class Polars(InProcessEngine):
    """Lazy frames of polars, with its streaming engine, which can process tables larger than memory."""

    name = label = "polars"
    rows_at_once = ROWS_AT_ONCE
    summed_as = nw.Int128

    def well_formed(self, frame: LazyFrame, columns: Sequence[str]) -> LazyFrame:
        import polars as pl

        def checked(texts: Any) -> Any:
            encoded = texts.cast(pl.Binary)
            try:
                encoded.cast(pl.String)
            except pl.exceptions.ComputeError:
                return pl.Series(texts.name, [_decoded(text) for text in encoded.to_list()], pl.String)
            return texts

        # polars does not check the texts of an Arrow table, and Python cannot read invalid ones.
        exprs = (pl.col(name).map_batches(checked, return_dtype=pl.String, is_elementwise=True) for name in columns)
        return opened(frame.to_native().with_columns(*exprs))

    def hashed(self, frame: LazyFrame, columns: Mapping[str, str]) -> LazyFrame:
        import polars as pl

        def numbers(texts: Any) -> Any:
            distinct = texts.unique()
            hashes = pl.Series([label_hash(text) for text in distinct.to_list()], dtype=pl.Int64)
            return texts.replace_strict(distinct, hashes, return_dtype=pl.Int64) if len(distinct) else hashes

        exprs = {
            to: pl.col(column).map_batches(numbers, return_dtype=pl.Int64, is_elementwise=True)
            for column, to in columns.items()
        }
        return opened(frame.to_native().with_columns(**exprs))

    def divided(self, column: nw.Expr, by: float) -> nw.Expr:
        # For a constant polars multiplies by the reciprocal, which rounds twice: 49 / 49 would be below 1.
        return column / (column * 0.0 + by)

    def dated(self, frame: LazyFrame, column: str, to: str) -> LazyFrame:
        import polars as pl

        return opened(frame.to_native().with_columns(pl.col(column).cast(pl.Date).alias(to)))

    def with_case(self, frame: LazyFrame, column: str, to: str, case: Case) -> LazyFrame:
        import polars as pl

        letters = LETTERS[case]
        changed = pl.col(column).str.replace_many(list(letters), list(letters.values()))
        return opened(frame.to_native().with_columns(changed.alias(to)))

    def row_hash(self, frame: LazyFrame, columns: Sequence[str], to: str) -> LazyFrame:
        import polars as pl

        limbs = [limb for column in map(pl.col, columns) for limb in (column // LIMB, column % LIMB)]
        native = frame.to_native().with_columns(folded(limbs).alias(to))
        return opened(native.with_columns(squared(pl.col(to)).alias(to)))

    def public_table(self, frame: LazyFrame, columns: Mapping[str, Sequence[Any]]) -> LazyFrame:
        import polars as pl

        return opened(pl.LazyFrame({name: list(values) for name, values in columns.items()}))

    def truncated(self, frame: LazyFrame, column: str, to: str, low: float) -> LazyFrame:
        import polars as pl

        # Without a test of each number whether it fits, which takes as long as the conversion.
        whole = pl.col(column).cast(pl.Int64, wrap_numerical=True)
        return opened(frame.to_native().with_columns(whole.alias(to)))

    def collected(self, frame: LazyFrame) -> dict[str, NDArray[Any]]:
        return _arrays(frame)

    def arrays(self, frame: LazyFrame) -> dict[str, NDArray[Any]]:
        return _arrays(frame)

    def private_table(self, frame: LazyFrame, columns: Mapping[str, NDArray[np.int64]]) -> LazyFrame:
        import polars as pl

        return opened(pl.LazyFrame(columns))

    def kept(self, frame: LazyFrame) -> LazyFrame:
        return opened(_collected(frame).lazy())

    def unstable(self, native: Any) -> str | None:
        lines = lines_of(native.explain(optimized=False))
        for index, (_, text) in enumerate(lines):
            if re.search(r"\.(sample|shuffle)\(", text):
                return RANDOM
            if text.startswith("SLICE:") or re.search(r"\)\.slice\(offset=", text):
                return LIMITED
            inputs = inputs_of(lines, index)
            if text.startswith("SLICE[") and not any(line.startswith("SORT BY") for line in inputs):
                return LIMITED
            if text.startswith("UNIQUE[maintain_order: false, keep_strategy: Any] BY Some"):
                return ONE_OF_SEVERAL
            if text.startswith("ROW INDEX") and any(re.search(r"maintain_order: false|JOIN:", line) for line in inputs):
                return NUMBERED
        return None

    def files(self, native: Any) -> Paths:
        # `visit` resolves the scans without releasing the interpreter's lock: it waits forever for one that is resolved
        # in Python, and for credentials, and nothing can interrupt it while it waits for a network.
        scans = native.explain(optimized=False)
        paths = partial(_shown_paths if re.search(_RESOLVED_ELSEWHERE, scans) else _paths, native)
        paths()  # raises at once if the plan cannot be inspected
        return paths


def _decoded(text: bytes | None) -> str | None:
    try:
        return None if text is None else text.decode()
    except UnicodeDecodeError:
        return None


def _collected(frame: LazyFrame) -> Any:
    # `collect(background=True)` can be cancelled, but keeps what it streams in memory.  This call checks for interrupts
    # in any thread, and ends a few seconds after one.
    refuse_stopped()
    return frame.to_native().collect(engine="streaming")


def _arrays(frame: LazyFrame) -> dict[str, NDArray[Any]]:
    return {column.name: column.to_numpy() for column in _collected(frame)}


_RESOLVED_ELSEWHERE = r"PythonDataset SCAN|SCAN \[(?!file:)\w+://"
"""Scans of a table of Delta Lake or Iceberg, and of files on other machines."""


def _paths(native: Any) -> list[str]:
    tree = native._ldf.visit()
    pending, paths = [tree.get_node()], []
    while pending:
        tree.set_node(pending.pop())
        with suppress(NotImplementedError):  # polars does not expose every operation
            paths += [str(path) for path in getattr(tree.view_current_node(), "paths", ())]
        pending += tree.get_inputs()
    return paths


def _shown_paths(native: Any) -> list[str]:
    """The files that the text of a plan shows, the first few of each scan; for a table with a log, those of the log."""
    shown = re.findall(r"SCAN \[(.*)\]", native.explain())
    return [_log_of(path.removeprefix("file://")) or path for paths in shown for path in paths.split(", ")]


def _log_of(path: str) -> str:
    """A pattern of the files that list all files of the table of Delta Lake or Iceberg to which a file belongs."""
    logs = (folder / name for folder in Path(path).parents for name in ("_delta_log", "metadata"))
    return next((f"{glob.escape(str(log))}/*" for log in logs if log.is_dir()), "")
