"""Joins and parts of tables that stay in their engine; see `dpnb._plan.join` and `dpnb._plan.partition`.

The engine forms the pairs; here only the rules of `dpnb._plan.join` bound the number of pairs of a unit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import narwhals as nw

from dpnb._backends.lazy.contribution import first_groups
from dpnb._backends.lazy.expressions import NarwhalsEvaluator
from dpnb._backends.lazy.lazy_table import LazyTable
from dpnb._plan.join import joined_name
from dpnb._plan.partition import part_keys
from dpnb._plan.plan import Join, PartSource
from dpnb._plan.schema import Schema


def join(left: LazyTable, right: LazyTable, schemas: tuple[Schema, Schema], source: Join) -> LazyTable:
    """Every pair of rows that one unit has in both tables."""
    stems: dict[str, str] = {}
    codes: dict[str, dict[Any, int]] = {}
    schema: Schema = {}
    frames = []
    for side, (table, own) in enumerate(zip((left.all_prepared(), right.all_prepared()), schemas, strict=True)):
        prefix = "lr"[side]
        columns = {} if side else {"name": nw.col("name")}
        for name in table.frame.collect_schema().names():
            if name not in ("unit", "name"):
                columns[prefix + name] = nw.col(name)
        for name in own:
            new = joined_name(name, side, source, schemas[1 - side])
            stems[new], schema[new] = prefix + table.stems[name], own[name]
        codes |= {prefix + stem: of for stem, of in table.codes.items()}
        frames.append(table.frame.select("unit", **columns))
    max_pairs = None if left.max_rows is None or right.max_rows is None else left.max_rows * right.max_rows
    pairs = frames[0].join(frames[1], on="unit", how="inner")
    return LazyTable(left.engine, pairs, stems, codes, left.public, schema, True, max_pairs, is_prepared=True)


def part(table: LazyTable, schema: Schema, which: PartSource) -> LazyTable:
    """The rows of a part: a private value."""
    rows = NarwhalsEvaluator(table, schema)
    code = part_keys(which.by.expression, schema).index(which.key)
    codes, _ = rows.level_codes(which.by.expression)
    kept = table.frame.collect_schema().names()
    frame = rows.frame.with_columns(cell=codes).filter(nw.col("cell") >= 0)
    if which.max_parts_per_unit is not None:
        frame = frame.with_columns(content=nw.col("cell"))
        frame = first_groups(table.engine, frame, which.max_parts_per_unit, ["cell"])
    return replace(table, frame=frame.filter(nw.col("cell") == code).select(*kept))
