"""The expected errors of a release before it is made: from schema, plan, budget and released values only."""

from __future__ import annotations

import math

import numpy as np

from dpnb._compile import LinearQuery
from dpnb._compile.features import Feature, TreeFeature, ValueFeature
from dpnb._compile.lowering import scaled
from dpnb._plan.measurements import (
    AnyView,
    BoundsView,
    ColumnsView,
    Count,
    CountUnits,
    CumulativeCount,
    Gradient,
    LevelCounts,
    LevelShareView,
    Mean,
    MeanCountView,
    ModelLoss,
    Moments,
    MomentsView,
    PlainView,
    Proportions,
    QuantilesView,
    Sum,
)
from dpnb._target import Target
from dpnb.accounting.prefix_sums import prefix_sum_scales
from dpnb.results.estimates.estimate import estimate
from dpnb.results.estimates.noisy import Cells, totals
from dpnb.results.estimates.quantiles import rank_scale
from dpnb.schema import Schema

RANK = "rows of rank"
"""Unit of a quantile's error: how many rows may lie between it and the requested rank."""


def in_rank(view: AnyView) -> bool:
    """Whether errors are in rows of rank."""
    return isinstance(view, QuantilesView)


def output_units(view: AnyView) -> tuple[str | None, ...]:
    """The unit of each column of a view: `RANK` of its quantiles, None of others; empty for other views."""
    columns = view.columns if isinstance(view, ColumnsView) else ()
    return tuple([RANK if isinstance(named.view, QuantilesView) else None for named in columns])


def in_rank_words(view: AnyView) -> str | None:
    """That ``within=`` is in rows of rank, and of which numbers; None if it is of none."""
    if isinstance(view, QuantilesView):
        names = {0.0: "a minimum", 0.5: "a median", 1.0: "a maximum"}
        return f"within= of {names.get(view.at[0], 'a quantile') if len(view.at) == 1 else 'quantiles'} is in {RANK}"
    if not isinstance(view, ColumnsView):
        return None
    ranked = [str(named.name) for named in view.columns if isinstance(named.view, QuantilesView)]
    return f"within= of {', '.join(ranked)} is in {RANK}" if ranked else None


def requested_in_rank(view: AnyView, target: Target) -> str | None:
    """The ``within=`` of a release as far as it is in rows of rank, in words; None if it is in none."""
    amounts = dict(target.amounts)
    if isinstance(view, ColumnsView):
        ranked = [str(named.name) for named in view.columns if isinstance(named.view, QuantilesView)]
        amounts = {label: amount for label, amount in amounts.items() if label in ranked}
    elif not isinstance(view, QuantilesView):
        return None
    if target.kind != "within" or not (target.amount or amounts):
        return None
    if target.amount is not None:
        return f"requested within ± {float(target.amount):,.6g} {RANK}"
    each = ", ".join(f"{_label_words(label)} within ± {float(amount):,.6g}" for label, amount in amounts.items())
    return f"requested {each} {RANK}"


def _label_words(label: object) -> str:
    return ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def rank_note(query: LinearQuery) -> str | None:
    """What an error of quantiles in rank leaves out, as a clause: the width of a leaf; None if there is nothing.

    A quantile is off in rank by the noise, and then in value by at most the leaf that contains it.
    """
    widths = (feature.resolution for feature in query.features if isinstance(feature, TreeFeature))
    found = [width for width in dict.fromkeys(widths) if width is not None]
    return f"and up to the width of a bin in value ({'; '.join(found)})" if found else None


def half_widths(
    query: LinearQuery,
    view: AnyView,
    sigma: Cells,
    radius: Cells,
    schema: Schema,
    *,
    known: Cells | None = None,
    rows: Cells | None = None,
    place: float = 1.0,
) -> Cells | None:
    """Expected half-widths of the intervals, shape (cells, outputs); None if none of them can be predicted.

    Infinite where a number cannot be predicted.  A view for which this module has no formula is predicted from earlier
    observations of the query, by its own estimate; without any it cannot be.

    Where the half-width depends on the number of rows, it also depends on the true value, and is then between a
    smallest and a largest value; `place` selects the position between them.

    `sigma` and `radius`, of shape (cells,), are the noise scale after the release and the half-width of the interval of
    one sum.  `known`, of shape (cells, slots), are sums released before, at which the errors of non-linear statistics
    are predicted; `rows` the number of rows of each group, released or public.  `place` is 0 for the smallest
    half-width that is possible given the number of rows, and 1 for the largest, on a log scale.
    """
    with np.errstate(all="ignore"):
        return _half_widths(query, view, sigma, radius, schema, known, rows, place)


def _half_widths(
    query: LinearQuery,
    view: AnyView,
    sigma: Cells,
    radius: Cells,
    schema: Schema,
    known: Cells | None,
    rows: Cells | None,
    at: float,
) -> Cells | None:
    columns = [(named.part, named.view) for named in view.columns] if isinstance(view, ColumnsView) else [(0, view)]
    half_widths = []
    predicted = None  # one estimate has the columns of all
    for index, single in columns:
        aggregation, first, count = query.parts[index]
        widths = _direct(query.features[first : first + count], aggregation, single, radius, rows, schema, at)
        if widths is None and known is not None:
            predicted = predicted or estimate(query, view, known, sigma, radius, schema)
            _, _, high = predicted.unclipped  # an interval that is clipped because nothing is known predicts nothing
            widths = np.where(np.isfinite(high) & ~predicted.is_collapsed, predicted.half_width, np.inf)
            if isinstance(view, ColumnsView):
                own = [named.view is single and named.part == index for named in view.columns].index(True)
                widths = widths[:, own : own + 1]
        half_widths.append(widths)
    if all(widths is None for widths in half_widths):
        return None
    # Beside columns that can be predicted, one that cannot is infinite.
    unknown = np.full((len(sigma), 1), np.inf)
    return np.concatenate([unknown if widths is None else widths for widths in half_widths], axis=1)


def _direct(
    features: tuple[Feature, ...],
    aggregation: object,
    view: AnyView,
    radius: Cells,
    rows: Cells | None,
    schema: Schema,
    at: float,
) -> Cells | None:
    """Half-widths that do not depend on earlier answers to the same query, shape (cells, outputs); None for others."""
    units = [float(feature.unit) for feature in features]
    first = features[0]
    if isinstance(aggregation, Gradient):
        return np.repeat((radius * units[0])[:, None], first.slots, axis=1)
    if isinstance(first, TreeFeature) and isinstance(view, PlainView | QuantilesView):
        levels = view.at if isinstance(view, QuantilesView) else (0.5,)
        return np.stack([radius * units[0] * rank_scale(first, q) for q in levels], axis=1)
    if isinstance(aggregation, CumulativeCount):
        return (radius * units[0] * prefix_sum_scales(len(radius)))[:, None]
    if isinstance(aggregation, Count | CountUnits | Sum) and isinstance(view, PlainView | BoundsView):
        return (radius * units[0])[:, None]
    if isinstance(view, MeanCountView) or (isinstance(view, MomentsView) and view.statistic == "count"):
        return (radius * units[0])[:, None]
    if rows is None:
        return None
    if isinstance(view, Proportions) and not isinstance(aggregation, Sum):
        return (radius * units[0] * _of_share(view.size or len(rows), at) / totals(rows, view.size))[:, None]
    if isinstance(aggregation, LevelCounts) and isinstance(view, LevelShareView):
        return (radius * units[0] * _of_share(first.slots, at) / rows)[:, None]
    if isinstance(aggregation, Mean | ModelLoss) and isinstance(view, PlainView):
        reach = float(_limit(features[1])) * units[1]
        width = _between(units[1], math.hypot(units[1], reach * units[0]), at)
        # No interval is longer than the distance of the bounds.
        return np.minimum(radius * width / rows, reach)[:, None]
    if isinstance(aggregation, Moments) and isinstance(view, MomentsView) and view.statistic in ("mean", "var"):
        return _moment_widths(aggregation, view, units, radius, rows, schema, at)
    return None


def _of_share(groups: int, at: float) -> float:
    """The noise of a share of some groups, as a multiple of that of a count over the total.

    A share p of G groups has variance 1 - 2p + G p^2 times that of a count over the total: least at p = 1/G, and
    largest at p = 1, where the noise of all other groups counts.
    """
    return _between(math.sqrt(max(1 - 1 / groups, 0.5)), math.sqrt(max(groups - 1, 1)), at)


def _between(smallest: float, largest: float, at: float) -> float:
    """A number between two, on a log scale."""
    return float(smallest ** (1 - at) * largest**at)


def _moment_widths(
    aggregation: Moments, view: MomentsView, units: list[float], radius: Cells, rows: Cells, schema: Schema, at: float
) -> Cells:
    """Between the smallest and the largest half-width over all possible means and variances.

    For z, scaled to [-1, 1]: a mean moves by (dS - m dN)/N, |m| <= 1; a variance by (dP - 2 m dS + (2 m^2 - u) dN)/N
    with P the sum of z^2 - 1/2 and u its mean, where m^2 <= u + 1/2, so |2 m^2 - u| <= 3/2; both m and u may be 0.
    """
    (column,) = view.columns
    reach = scaled(aggregation.columns[column], schema)[2]
    count, first = units[0], units[1 + column]
    if view.statistic == "mean":
        return (radius * _between(first, math.hypot(first, count), at) / rows * reach)[:, None]
    size = len(aggregation.columns)
    square = units[1 + size + sum(size - i for i in range(column))]
    width = _between(square, math.hypot(square, 2 * first, 1.5 * count), at)
    divisor = np.maximum(rows - view.ddof, rows / 2)  # at least as for two rows, the fewest that have a variance
    return (radius * width / divisor * reach**2)[:, None]


def _limit(feature: Feature) -> int:
    return feature.row_limit * feature.weight if isinstance(feature, ValueFeature) else 1
