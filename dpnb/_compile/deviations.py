"""Products of deviations from means within a unit: the measurement of a regression with fixed effects.

Each product is summed over the rows of a unit, which has the sum once (`dpnb._compile.products`). In n rows the
squared deviations of a number with range R from its mean add up to at most n R^2/4 (Popoviciu 1935), and by the
inequality of Cauchy and Schwarz the products of two numbers to at most n/4 times the product of their ranges. The sum
of a unit is clipped to this, for its largest number of rows, so that rounding, or a wrong number of rows, cannot
exceed it.
"""

from __future__ import annotations

from dpnb._plan.expressions.nodes import Arithmetic, Clip, Expression, WithinUnit
from dpnb._plan.expressions.rules import numeric_dtype_of
from dpnb._plan.measurements import DeviationProducts
from dpnb.schema import Schema


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
