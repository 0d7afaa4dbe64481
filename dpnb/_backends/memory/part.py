"""The rows of one group as a separate table, for a partition.  Reads rows.

With a limit, a unit that has rows in more groups counts in the first `max_parts_per_unit` of them by the hash of
`contribution`, before any filter: the choice depends on the unit's own rows alone, and is the same in every part and
query.
"""

from __future__ import annotations

import numpy as np

from dpnb._backends.contribution import first_groups
from dpnb._backends.memory.evaluate import NumpyEvaluator
from dpnb._backends.memory.prepare.prepared_table import PreparedTable
from dpnb._backends.memory.working_set import rows_for
from dpnb._plan.partition import part_keys
from dpnb._plan.plan import PartSource
from dpnb._plan.schema import Schema


def part(table: PreparedTable, schema: Schema, which: PartSource) -> PreparedTable:
    """The rows of a part: a private value."""
    with np.errstate(all="ignore"):
        rows = NumpyEvaluator(table, schema, rows_for(which.by.expression))
        codes = rows.by_pieces(lambda piece: piece.level_codes(which.by.expression)[0])
    code = part_keys(which.by.expression, schema).index(which.key)
    chosen = np.flatnonzero(codes >= 0)
    if which.max_parts_per_unit is not None:
        groups = codes[chosen].astype(np.int64)
        chosen = chosen[first_groups(rows.units[chosen], rows.names[chosen], groups, groups, which.max_parts_per_unit)]
    return table.taken(chosen[codes[chosen] == code])
