"""Selection of a unit's rows in the engine: windows over the unit, by the hash of `dpnb._backends.contribution`."""

from __future__ import annotations

from collections.abc import Mapping

import narwhals as nw

from dpnb._backends.lazy.engines.engine import Engine, LazyFrame


def ranked(
    engine: Engine, frame: LazyFrame, contents: Mapping[str, nw.Expr], finer: Mapping[str, nw.Expr]
) -> LazyFrame:
    """The frame with ``rank``: the rank of each row among its unit's rows, from 1.

    `contents` and `finer` are as for `dpnb._backends.contribution.ranks`, by the names of temporary columns.
    """
    kept = frame.collect_schema().names()
    frame = engine.row_hash(frame.with_columns(**contents, **finer), ["name", *contents], "h_content")
    # Rows that are equal in all of these are interchangeable.
    equal = _number_in(["unit", *contents], [*finer] or ["h_content"])
    frame = frame.with_columns(h_equal=equal - 1)
    frame = engine.row_hash(frame, ["h_content", "h_equal"], "h_final")
    order = ["h_final", "h_content", *contents, *finer, "h_equal"]
    return frame.with_columns(rank=_number_in(["unit"], order)).select(*kept, "rank")


def content_hashes(engine: Engine, frame: LazyFrame, contents: Mapping[str, nw.Expr], to: str) -> LazyFrame:
    """The frame with the hash by which `ranked` orders a row that no other row of its unit equals."""
    frame = engine.row_hash(frame.with_columns(**contents), ["name", *contents], "h_content")
    return engine.row_hash(frame.with_columns(h_equal=nw.lit(0).cast(nw.Int64)), ["h_content", "h_equal"], to)


def first_rows(frame: LazyFrame, max_rows: int, by: tuple[str, ...] = ("unit",)) -> LazyFrame:
    """The first rows by ``rank`` of each unit, or of each unit in each group."""
    frame = frame.with_columns(number=_number_in(list(by), ["rank"]))
    return frame.filter(nw.col("number") <= max_rows).drop("number")


def first_groups(engine: Engine, frame: LazyFrame, max_groups: int, cell: list[str]) -> LazyFrame:
    """The rows in the first groups of each unit, by a hash of its name and of column ``content``.

    The columns `cell` identify a group; they also order groups with equal hashes.
    """
    groups = engine.distinct(frame.select("unit", "name", *dict.fromkeys([*cell, "content"])))
    groups = engine.row_hash(groups, ["name", "content"], "h_content")
    groups = groups.with_columns(h_equal=_number_in(["unit", "content"], cell) - 1)
    groups = engine.row_hash(groups, ["h_content", "h_equal"], "h_final")
    order = ["h_final", "h_content", "content", *cell]
    groups = groups.with_columns(number=_number_in(["unit"], order)).filter(nw.col("number") <= max_groups)
    return frame.join(groups.select("unit", *cell), on=["unit", *cell], how="inner")


def _number_in(parts: list[str], order: list[str]) -> nw.Expr:
    """1, 2, 3, ... for the rows of each part, in an order."""
    return nw.col("name").cum_count().over(*parts, order_by=list(dict.fromkeys(order)))
