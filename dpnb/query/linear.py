"""The one idea: a question is a linear query.

Every row gives a short integer vector (its *features*), put into the cell of its group; a unit's vector is the sum
over the unit's rows; the answer is the sum over all units, plus noise, plus post-processing.  A new aggregation is a
new set of features and a post-processing in `dpnb.answer`.

Sensitivity (add or remove one unit with all its rows).  Let every feature vector have L2 norm at most r, and let at
most k rows of a unit count.  Wherever the rows fall, the unit's vector is a sum of at most k vectors of norm at most
r, so by the triangle inequality its norm is at most C = k r; k equal rows in one cell reach it.  For distinct units
the vector is an indicator of the cells that the unit's rows touch, at most min(k, cells) of them, so
C = sqrt(min(k, cells)).  C squared is an exact integer in grid units.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpnb.query import grid
from dpnb.query.expressions import column_type
from dpnb.query.plan import Count, Mean, Plan, Sum, Units, check_plan
from dpnb.query.schema import Bounded, Categories, Key, PrivacyUnit, Schema


@dataclass(frozen=True)
class Feature:
    """One component of a row's vector, in integers.

    Parameters
    ----------
    unit : Fraction
        What one integer step stands for, in the column's units (or rows).
    limit : int
        Largest absolute value that a row can give.
    column : str, optional
        Gives ``steps of the column - centre``; None gives the constant `limit`.
    centre : int
        Grid steps taken off the column.
    """

    unit: Fraction
    limit: int
    column: str | None = None
    centre: int = 0


@dataclass(frozen=True)
class LinearQuery:
    """What is summed, and how much one privacy unit can change the sums.

    Parameters
    ----------
    plan : Plan
    features : tuple of Feature
    keys : tuple
        Keys of the cells; empty for one cell without a key.
    l2_sensitivity_squared : int
        C squared, in grid units.
    distinct : bool
        Each unit counts once in a cell, however many rows it has there.
    """

    plan: Plan
    features: tuple[Feature, ...]
    keys: tuple[Key, ...]
    l2_sensitivity_squared: int
    distinct: bool = False

    @property
    def cells(self) -> int:
        """Number of groups; 1 for an ungrouped question."""
        return max(1, len(self.keys))


def linear_query(plan: Plan, schema: Schema, unit: PrivacyUnit) -> LinearQuery:
    """Compile a plan.

    Raises
    ------
    PlanError
        The schema gives the plan no meaning or no bound.
    """
    check_plan(plan, schema)
    keys = _keys(plan, schema)
    features = _features(plan, schema)
    if isinstance(plan.aggregation, Units):
        return LinearQuery(plan, features, keys, min(unit.max_rows, max(1, len(keys))), distinct=True)
    row_norm_squared = sum(feature.limit**2 for feature in features)
    return LinearQuery(plan, features, keys, unit.max_rows**2 * row_norm_squared)


def _keys(plan: Plan, schema: Schema) -> tuple[Key, ...]:
    if not plan.by:
        return ()
    declared = schema[plan.by[0]]
    return declared.values if isinstance(declared, Categories) else ()


def _features(plan: Plan, schema: Schema) -> tuple[Feature, ...]:
    match plan.aggregation:
        case Count() | Units():
            return (Feature(unit=Fraction(1), limit=1),)
        case Sum(name):
            column = _bounded(name, schema)
            limit = max(abs(grid.steps(column.low, column)), abs(grid.steps(column.high, column)))
            return (Feature(unit=_step(column), limit=limit, column=name),)
        case Mean(name):
            return _mean_features(name, _bounded(name, schema))


def _mean_features(name: str, column: Bounded) -> tuple[Feature, ...]:
    """A count and a centred sum, asked jointly.

    With m the middle of the bounds and R half their width, the mean is m + T/N for T = sum(x - m), N = count.  Give N
    the weight a and T the weight b/R, a**2 + b**2 = 1, so that a row's vector has norm at most 1.  Noise of scale s on
    both changes the mean by about s/n * sqrt(R**2/b**2 + d**2/a**2), d = mean - m.  Over all |d| <= R the largest value
    R s/n * sqrt(1/a**2 + 1/b**2) is least at a = b: the count weighs exactly R.  (Two separate questions at half of
    mu**2 each, with the sum not centred, have up to twice the noise.)
    """
    low, high = grid.steps(column.low, column), grid.steps(column.high, column)
    centre = (low + high) // 2
    limit = max(high - centre, centre - low)
    return (
        Feature(unit=Fraction(1, limit), limit=limit),
        Feature(unit=_step(column), limit=limit, column=name, centre=centre),
    )


def _bounded(name: str, schema: Schema) -> Bounded:
    column = column_type(name, schema)
    if not isinstance(column, Bounded):  # check_plan has refused this; the type checker does not know
        raise TypeError(name)
    return column


def _step(column: Bounded) -> Fraction:
    exponent = grid.exponent(column)
    return Fraction(2) ** exponent


def explain(query: LinearQuery, unit: PrivacyUnit) -> str:
    """What one unit can add, in words."""
    whose = f"one {unit.column}" if unit.column else "one row"
    if query.distinct:
        cells = query.l2_sensitivity_squared
        return f"{whose} counts once" + (f" in each of at most {cells} groups" if query.keys and cells > 1 else "")
    rows = f" in at most {unit.max_rows} rows" if unit.max_rows > 1 else ""
    feature = query.features[-1]
    if feature.column is None:
        return f"{whose} adds at most {unit.max_rows}{' rows' if unit.max_rows > 1 else ' row'}"
    reach = float(feature.limit * feature.unit)
    about = f" away from {float(feature.centre * feature.unit):g}" if len(query.features) > 1 else ""
    return f"{whose} adds at most {reach:g}{about} a row{rows}"
