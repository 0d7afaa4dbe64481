"""How many rows are computed at a time, so that the memory of a query is bounded whatever its plan and its rows.

Besides the table and the answer, each core uses about `BLOCK_BYTES`: half of it for results that several features
share, half for the one expression that is being computed.  Only arrays with a few bytes for each row of a block, such
as a mask, exist for all of its rows at once, since a block has whole units and a unit may have any number of rows.
"""

from __future__ import annotations

from dpnb._backends.memory import blocks
from dpnb._compile.features import CountFeature, GradientFeature, ModelLossFeature, TreeFeature, ValueFeature
from dpnb._compile.linear import LinearQuery
from dpnb._compile.work import NUMBER_BYTES
from dpnb._plan.expressions.nodes import Expression, conjuncts, nodes_of

BLOCK_BYTES = 2**26
"""Memory for the rows of a block, for each core."""

KEPT_BYTES = BLOCK_BYTES // 2
"""Results that are kept between two expressions."""

NODE_BYTES, ROW_BYTES = 16, 64
"""Memory for each row: for each node of an expression, and besides."""

ENTRY_BYTES = 128
"""Memory for each entry of the vectors of units, while they are made."""

SUM_BYTES, ANSWER_BYTES = 24, NUMBER_BYTES // 2
"""Memory for each sum of a block while it is computed, and what the answer will need more than its sums."""

LEAST_ROWS = 64


def rows_at_once(query: LinearQuery) -> int:
    """The number of rows for which the expressions of a query are computed at a time.

    If the sums of a feature are many, as many rows, so that the sums of a few rows are not added to all of them again
    and again: that takes less memory than the answer will.
    """
    largest = max([len(nodes_of(item)) for item in _items(query)], default=1)
    wanted = max(blocks.ROWS_AT_ONCE, query.cells * max([feature.slots for feature in query.features]))
    size = max(BLOCK_BYTES // 2, query.cells * query.slots * ANSWER_BYTES // blocks.cores())
    return max(min(wanted, size // (NODE_BYTES * largest + ROW_BYTES)), LEAST_ROWS)


def rows_for(node: Expression) -> int:
    """The number of rows for which one expression is computed at a time."""
    rows = BLOCK_BYTES // 2 // (NODE_BYTES * len(nodes_of(node)) + ROW_BYTES)
    return max(min(blocks.ROWS_AT_ONCE, rows), LEAST_ROWS)


def blocks_at_once(query: LinearQuery) -> int:
    """The number of blocks whose sums exist at a time."""
    return max(2, 4 * BLOCK_BYTES // (SUM_BYTES * query.cells * query.slots))


def entries_at_once() -> int:
    """The number of entries of vectors of units that are made at a time."""
    return BLOCK_BYTES // ENTRY_BYTES


def numbers_at_once() -> int:
    """The number of integers that rows add to features, kept at a time."""
    return BLOCK_BYTES // 8


def _items(query: LinearQuery) -> list[list[Expression]]:
    """The expressions of a query, by what is computed together."""
    items = [[node] for node in conjuncts(query.plan.where)]
    items.append([group.expression for group in query.plan.group_by])
    for feature in query.features:
        if isinstance(feature, GradientFeature | ModelLossFeature):
            chains = feature.chains if isinstance(feature, GradientFeature) else 1
            items.append([*feature.required, *feature.required[:1] * chains])
        elif isinstance(feature, TreeFeature | ValueFeature):
            items.append([feature.expression])
        if isinstance(feature, CountFeature | ValueFeature):
            items.append([*feature.split.by])
    items += [[node] for required in query.required_by_features for node in required]
    return [item for item in items if item]
