"""Products of what a unit's rows in a group add up to, for standard errors of a population; their sensitivity.

Such a number stands in one row of the unit and group, and is 0 in its other rows; so its sums are sums over units, and
measured beside those of rows.  Which row it is makes no difference, and it is computed from the unit's own rows alone
(`dpnb._compile.within`).

Sensitivity
-----------
Let a unit have n_g rows in group g, at most r in all.  These are its rows in the table: where a limit of the query
counts fewer of a group's, the row with the number may not count, so such a query is refused.  Let K, at most 2^20, be
the number of rows for which the products are bounded.  With ``|a| <= A`` and ``|b| <= B`` in each row, a sum is
clipped to K A or K B, and the number x in a group to L = K^2 A B.  With m = min(n_g, K) it is at most ``(m/K)^2 L``.
Rounding to the grid, of at least 2^29 steps for L, adds less than one step h.  So ``x^2 <= L^2 m/K``: if m = K by the
clipping, and otherwise since ::

    ((m/K)^2 L + h)^2 <= L^2 (m/K) (1 - 1/K) + 3 h L m/K <= L^2 m/K,    3 h K <= L.

The squared norm of the unit's numbers is therefore at most L^2 r/K: that of one number at its bound if K = r, however
many groups there are.  It is also at most c L^2 in c groups, whatever r is.

Products of deviations from means within a unit are the measurement of a regression with fixed effects.  They have no
groups.  Each is summed over the rows of a unit, which has the sum once.  In n rows the squared deviations of a number
with range R from its mean add up to at most n R^2/4 (Popoviciu 1935), and by the inequality of Cauchy and Schwarz the
products of two numbers to at most n/4 times the product of their ranges.  The sum of a unit is clipped to this, for its
largest number of rows, so that rounding, or a wrong number of rows, cannot exceed it.
"""

from __future__ import annotations

from functools import reduce

import msgspec

from dpnb._plan.expressions.nodes import (
    And,
    Arithmetic,
    Clip,
    Compare,
    Expression,
    IsNull,
    Literal,
    Not,
    Where,
    WithinUnit,
)
from dpnb._plan.expressions.rules import numeric_dtype_of
from dpnb._plan.expressions.substitution import Substitution
from dpnb._plan.measurements import DeviationProducts, UnitProducts
from dpnb._plan.privacy_unit import MAX_LIMIT
from dpnb.schema import Schema

ANY = 1
"""The offset of a number that rows without an order have in any order; a plan cannot contain it."""


def unit_products(aggregation: UnitProducts) -> tuple[Expression, ...]:
    """The products of each pair, in one row of each unit and group; in every row if each counts as a unit."""
    rows = aggregation.max_rows
    terms: list[Expression] = [*aggregation.columns]
    if rows > 1:
        terms = [WithinUnit("sum", node, rows) for node in terms]
    products = tuple(
        Arithmetic("**", terms[i], Literal(2)) if i == j else Arithmetic("*", terms[i], terms[j])
        for i, j in aggregation.pairs
    )
    return products if rows == 1 else tuple(once(product) for product in products)


def deviation_products(aggregation: DeviationProducts, schema: Schema) -> tuple[Expression, ...]:
    """The sum of each product over the rows of a unit, in all rows of the unit where no number is null."""
    rows, where = aggregation.max_rows, aggregation.complete
    numbers = [numeric_dtype_of(node, schema, "regress") for node in aggregation.columns]
    ranges = [number.high - number.low for number in numbers]
    deviations = [Arithmetic("-", node, WithinUnit("mean", node, None, where)) for node in aggregation.columns]
    products: list[Expression] = []
    for i, one in enumerate(deviations):
        for j in range(i, len(deviations)):
            reach = rows / 4 * ranges[i] * ranges[j]
            total = WithinUnit("sum", Arithmetic("*", one, deviations[j]), rows, where)
            products.append(Clip(total, 0.0 if i == j else -reach, reach))
    return tuple(products)


def once(node: Expression) -> Expression:
    """An expression that is equal in all rows of a unit and group, in one of these rows, and 0 in the others."""
    # Numbers are clipped to this limit: with a smaller one, several rows could have the number 0.
    number = WithinUnit("number", Literal(True), MAX_LIMIT, offset=ANY)
    return Where(Compare("==", number, Literal(0)), node, Literal(0))


def of_groups(
    node: Expression, required: tuple[Expression, ...], where: Expression | None, keys: tuple[Expression, ...]
) -> Expression:
    """The same, of the rows for which a condition is true and nothing required is missing, in each group.

    A compiled query has neither: its features are kept for other filters.
    """
    present: list[Expression] = [Not(IsNull(one)) for one in required]
    chosen = reduce(And, ([] if where is None else [where]) + present)

    def changed(inner: Expression) -> Expression | None:
        if inner in required:  # a number that was given, perhaps computed from the rows of a unit in its own way
            return inner
        if not isinstance(inner, WithinUnit):
            return None
        return msgspec.structs.replace(inner, inner=changing.of(inner.inner), where=chosen, keys=keys)

    changing = Substitution(changed)
    result: Expression = changing.of(node)
    return result
