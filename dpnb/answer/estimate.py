"""Noisy sums -> estimates and intervals.  Post-processing: nothing here sees a row, so nothing here costs.

Intervals cover the noise.  They do not cover sampling, clamping to the declared bounds, or rows beyond
``max_rows_per_unit``; each moves the quantity that is estimated, not the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpnb.query.linear import LinearQuery
from dpnb.query.plan import Count, Mean, Sum, Units
from dpnb.query.schema import Bounded, Schema

Cells = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """One number a cell; each array has shape (cells,).

    Parameters
    ----------
    value : float64 array
        NaN where the noise leaves nothing to say (a mean of a group that may be empty).
    low, high : float64 array
        Interval of each cell by itself.
    noise_scale : float64 array
        Standard deviation of the noise; of a mean, approximately.
    """

    value: Cells
    low: Cells
    high: Cells
    noise_scale: Cells


def estimate(query: LinearQuery, sums: Cells, sigma: float, radius: float, schema: Schema) -> Estimate:
    """Turn noisy sums into estimates.

    Parameters
    ----------
    query : LinearQuery
    sums : float64 array, shape (cells * features,)
        In grid units.
    sigma : float
        Their noise scale.
    radius : float
        Half-width of the interval of one sum.
    schema : dict
    """
    table = np.asarray(sums, np.float64).reshape(query.cells, len(query.features))
    if isinstance(query.plan.aggregation, Mean):
        return _mean(query, table, sigma, radius, _column(query, schema))
    unit = float(query.features[0].unit)
    value = table[:, 0] * unit
    low, high = _range(query, schema)
    return Estimate(
        value,
        np.clip(value - radius * unit, low, high),
        np.clip(value + radius * unit, low, high),
        np.full(query.cells, sigma * unit),
    )


def error_factor(query: LinearQuery, rows: float | None) -> float:
    """Half-width of the estimate's interval for each unit of a sum's half-width.

    Parameters
    ----------
    query : LinearQuery
    rows : float or None
        Rows in the (smallest) cell; a mean needs it.
    """
    if not isinstance(query.plan.aggregation, Mean):
        return float(query.features[0].unit)
    # The largest over all positions of the mean within the bounds; see `_mean` with |phi| = 1.
    return math.inf if not rows else math.sqrt(2.0) * float(query.features[1].unit) / rows


def released_rows(query: LinearQuery, sums: Cells, sigma: float) -> Cells | None:
    """Rows of each cell as released noisy sums give them; NaN where they drown in noise, None if there are none."""
    if isinstance(query.plan.aggregation, Count | Mean):
        unit = float(query.features[0].unit)
        rows = np.asarray(sums, np.float64).reshape(query.cells, len(query.features))[:, 0] * unit
        return np.where(rows > 2 * sigma * unit, rows, np.nan)
    return None


def _mean(query: LinearQuery, table: Cells, sigma: float, radius: float, column: Bounded) -> Estimate:
    """The ratio of noisy centred sum and noisy count, with Fieller's interval (exact, not linearised).

    In grid units the count's sum is c = limit * N + noise and the centred sum t = T + noise, both of scale sigma.  With
    phi = T / (limit * N), the true mean's place between the bounds (-1 to 1), t - phi c is Gaussian of scale
    sigma * sqrt(1 + phi^2), so {phi: |t - phi c| <= radius * sqrt(1 + phi^2)} has exactly the coverage that `radius`
    has.  Where the count may be zero the set is everything the bounds allow.
    """
    count, total = table[:, 0], table[:, 1]
    reach = query.features[1].limit * float(query.features[1].unit)
    centre = query.features[1].centre * float(query.features[1].unit)
    with np.errstate(all="ignore"):
        phi = total / count
        surely_some = count > radius
        a = count**2 - radius**2
        spread = radius * np.sqrt(np.maximum(count**2 + total**2 - radius**2, 0.0))
        low = np.where(surely_some, (total * count - spread) / a, -1.0)
        high = np.where(surely_some, (total * count + spread) / a, 1.0)
        scale = np.where(surely_some, sigma * np.sqrt(1 + np.minimum(phi**2, 1.0)) / count * reach, np.nan)
        value = np.where(count > 0, phi, np.nan)

    def physical(place: Cells) -> Cells:
        return np.clip(centre + np.clip(place, -1.0, 1.0) * reach, column.low, column.high)

    return Estimate(physical(value), physical(low), physical(high), scale)


def _range(query: LinearQuery, schema: Schema) -> tuple[float, float]:
    """What the quantity can be, whatever the table holds."""
    if isinstance(query.plan.aggregation, Count | Units):
        return 0.0, math.inf
    if isinstance(query.plan.aggregation, Sum):
        column = _column(query, schema)
        return (0.0 if column.low >= 0 else -math.inf), (0.0 if column.high <= 0 else math.inf)
    return -math.inf, math.inf


def _column(query: LinearQuery, schema: Schema) -> Bounded:
    name = query.features[-1].column
    column = schema[name] if name is not None else None
    if not isinstance(column, Bounded):  # a compiled query has one; the type checker does not know
        raise TypeError(name)
    return column
