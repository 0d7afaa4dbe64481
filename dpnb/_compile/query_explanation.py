"""The contribution of one unit, and the noise, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dpnb._browser.glossary import IN_THIS_TABLE
from dpnb._compile.features import (
    BY_UNIT,
    CountFeature,
    Feature,
    GradientFeature,
    ModelLossFeature,
    TreeFeature,
    UnitFeature,
    UnitValueFeature,
    ValueFeature,
)
from dpnb._compile.sensitivity import (
    UNKNOWN_CELLS,
    LinearQuery,
    cells_of_unit,
    max_norm_squared,
    max_rows_in_cell,
    rows_squared,
)
from dpnb._plan.expressions.nodes import Column
from dpnb._plan.expressions.text import words
from dpnb._plan.expressions.within import WITHIN_RULES
from dpnb._plan.join import tables_of
from dpnb._plan.measurements import (
    CountActiveUnits,
    CountUnits,
    DeviationProducts,
    Discovery,
    JointAggregation,
    ModelLoss,
    Moments,
    ScoreSums,
    Single,
    UnitProducts,
    products_of,
)
from dpnb._plan.plan import Join, PartSource, PerUnit, TableSource, within_units
from dpnb._plan.privacy_unit import PrivacyUnit, describe_bounds, ordinal
from dpnb.accounting.prefix_sums import prefix_sum_scales
from dpnb.schema import Categories, Schema

SUMMARISED = (Moments, DeviationProducts, UnitProducts, ScoreSums)
"""Aggregations of many numbers, of which one is explained."""


SCALED = ", scaled to -1 ... 1"
ALONE = "1 for each row, and at most 1 to each sum and product of "
"""How the contribution to moments begins and ends."""


def contribution(query: LinearQuery, unit: PrivacyUnit) -> str:
    """The contribution of one unit, in one line."""
    parts = "; ".join(_said_once(dict.fromkeys(text for part in query.parts for text in _part(part, query))))
    if unit.column is None:
        return f"one row adds {parts.replace(' for each row', '')}"
    return f"one {unit.noun} adds {parts} ({describe_bounds(query.contribution_bounds)})"


def _said_once(texts: Iterable[str]) -> list[str]:
    """The contributions to the moments of single columns, as a description of many has them, as one text."""
    said: list[str] = []
    for text in texts:
        before = said[0] if said else ""
        if text.startswith(ALONE) and before.startswith(ALONE):
            said[0] = f"{before.removesuffix(SCALED)}, of {text.removeprefix(ALONE)}"
        else:
            said.insert(0 if text.startswith(ALONE) else len(said), text)
    return said


def uncounted(query: LinearQuery, unit: PrivacyUnit, units: Mapping[str, PrivacyUnit]) -> str | None:
    """The rows that do not count where a unit has more than its limits allow, in words; None if every row counts.

    `unit` has the limits in the table of the query, `units` those in the tables of the session.
    """
    plan = query.plan
    # Whether a unit has any row at all does not depend on how many of them count.
    any_row = isinstance(plan.aggregation, CountUnits) and plan.where is None and not plan.group_by
    if unit.column is None or any_row or isinstance(plan.aggregation, CountActiveUnits):
        return None
    beyond = [*_beyond(query, unit, units)]
    texts = []
    if beyond:
        more = "".join(f", or beyond {limit}" for limit in beyond[1:])
        texts.append(f"rows beyond {beyond[0]} of one {unit.noun}{more}{',' if more else ''} are not counted")
    if query.clip_squared is not None and (norm := query.contribution_bounds.max_norm) is not None:
        texts.append(f"what one {unit.noun} adds is scaled down to at most {norm:g} times the longest row")
    return "; ".join(texts) or None


def _beyond(query: LinearQuery, unit: PrivacyUnit, units: Mapping[str, PrivacyUnit]) -> Iterator[str]:
    """The last rows that count: of each table, of the query, in a group, and in how many groups and parts."""
    plan, limits, tables = query.plan, query.contribution_bounds, tables_of(query.plan.source)
    requested = plan.contribution_bounds.rows_below(unit.max_rows)
    kind = " pair" if isinstance(plan.source, Join) else " computed row" if isinstance(plan.source, PerUnit) else ""
    per_group, is_grouped = limits.max_rows_per_group, bool(plan.group_by)
    if per_group is not None and not is_grouped and max_rows_in_cell(limits) == per_group:
        requested = per_group  # all rows are in one group
    for name in tables:
        rows = units[name].max_rows
        if rows is not None and (requested is None or kind):
            yield f"the {ordinal(rows)}{f' in {name}' if len(tables) > 1 else ''}"
    if requested is not None:
        yield f"the {ordinal(requested)}{kind}"
    most = limits.max_rows
    if is_grouped and per_group is not None and max_rows_in_cell(limits) != most:
        yield f"the {ordinal(per_group)} in a group"
    if is_grouped and limits.max_groups is not None and (most is None or limits.max_groups < most):
        yield f"the {ordinal(limits.max_groups)} group"
    yield from (f"the {ordinal(parts)} part" for parts in _max_parts(plan.source))


def _max_parts(source: TableSource) -> list[int]:
    """How many parts of a partition a unit counts in, where that is limited."""
    if isinstance(source, Join):
        return [*_max_parts(source.left), *_max_parts(source.right)]
    if isinstance(source, str):
        return []
    own = source.max_parts_per_unit if isinstance(source, PartSource) else None
    return [*([] if own is None else [own]), *_max_parts(source.source)]


def caption(query: LinearQuery, unit: PrivacyUnit, units: Mapping[str, PrivacyUnit]) -> str | None:
    """What is said below an answer of the rows that it does not count; None if nothing is."""
    return "; ".join(filter(None, (uncounted(query, unit, units), query.left_out.caption))) or None


def left_out(
    query: LinearQuery, unit: PrivacyUnit, units: Mapping[str, PrivacyUnit], schema: Schema
) -> list[tuple[str, str]]:
    """What an answer does not count, from the plan and public limits alone; pairs of heading and text.

    `schema` is that of the table of the query.
    """
    found = [
        ("not counted", uncounted(query, unit, units)),
        ("other values", _undeclared(query, schema)),
        ("missing values", query.left_out.words),
    ]
    return [(heading, text) for heading, text in found if text is not None]


def _undeclared(query: LinearQuery, schema: Schema) -> str | None:
    """The categories by whose declaration rows are left out; whether there are any other values is private."""
    needed = [*(level.expression for level in query.plan.group_by), *query.required]
    names = [node.name for node in needed if isinstance(node, Column) and isinstance(schema[node.name], Categories)]
    if not names:
        return None
    return f"rows with other values of {' or '.join(dict.fromkeys(names))} than declared are not counted"


def explanation(
    query: LinearQuery, unit: PrivacyUnit, units: Mapping[str, PrivacyUnit], schema: Schema
) -> list[tuple[str, str]]:
    """A unit's contribution, the clipping, and the reasons for the noise scale; pairs of heading and text."""
    facts = [("contribution", contribution(query, unit)), ("clipped", _clipped(query, unit))]
    facts += left_out(query, unit, units, schema)
    facts += [("bounds", text) for text in dict.fromkeys(_within(query, unit))]
    cells = query.cells if not isinstance(query.plan.aggregation, Discovery) else UNKNOWN_CELLS
    if any(isinstance(feature, UnitValueFeature) for feature in query.features):
        group = " in one group" if query.keys else ""
        facts.append(("worst case of products", f"all rows of a unit{group}, with products at their bounds"))
    if any(not isinstance(feature, (*BY_UNIT, UnitValueFeature)) for feature in query.features):
        facts.append(("worst case", _worst(query, cells)))
    if any(isinstance(feature, UnitFeature) for feature in query.features):
        groups = cells_of_unit(query.contribution_bounds, cells)
        facts.append(("worst case", f"a unit counts once in each of at most {groups} groups: norm sqrt({groups})"))
    if any(isinstance(feature, GradientFeature) for feature in query.features):
        facts.append(("worst case", "a gradient of the clipping norm, whatever the number of rows of the unit"))
    if isinstance(query.plan.aggregation, JointAggregation):
        total = sum(part.weight for part in query.plan.aggregation.parts)
        shares = (f"{part.weight / total:.0%}" for part in query.plan.aggregation.parts)
        facts.append(("shared", f"the charge is shared by {len(query.parts)} measurements: {', '.join(shares)}"))
    details = {
        index
        for aggregation, first, count in query.parts
        if isinstance(aggregation, SUMMARISED)
        for index in range(first + 1, first + count)
    }
    scales = (_scale(feature, query) for index, feature in enumerate(query.features) if index not in details)
    facts.append(("noise", "at mu=1, standard deviation of " + "; ".join(dict.fromkeys(scales))))
    condition = ", given that a group was released" if isinstance(query.plan.aggregation, Discovery) else ""
    sampling = (
        "not sampling" if products_of(query.plan.aggregation) is None else "not sampling (see population intervals)"
    )
    covered = f"cover the noise{condition}, {IN_THIS_TABLE}: {sampling}, clipping, or rows that do not count"
    facts.append(("intervals", covered))
    facts.append(("less noise", "half the noise costs four times the budget; mu=0.5 gives twice the noise"))
    return facts


def _within(query: LinearQuery, unit: PrivacyUnit) -> list[str]:
    """Why values within a unit have their bounds, where these depend on the number of its rows."""
    reasons = {
        "sum": "as many times those of a row",
        "rolling sum": "times those of a row, of at most as many as the window",
        "count": "from 0 to this number",
        "number": "from 0 to one less",
        "rank": "from 1 to this number",
    }
    found = []
    for node in within_units(query.plan):
        reason = reasons.get(WITHIN_RULES[node.function].bounds)
        if reason is not None and node.max_rows is not None:
            rows = f"{node.max_rows} row{'s' if node.max_rows > 1 else ''}"
            found.append(f"{words(node)}: at most {rows} of one {unit.noun} count, so {reason}")
    return found


def _part(part: tuple[Single | Discovery, int, int], query: LinearQuery) -> list[str]:
    """A row's contribution to one part; moments are summarised."""
    aggregation, first, count = part
    if isinstance(aggregation, Moments):
        of = ", ".join(words(node) for node in (*aggregation.columns, *aggregation.categories))
        if aggregation.weights is not None:
            weight = f"its weight {words(aggregation.weights)} scaled to 0 ... 1"
            return [f"at most 1 for each row, {weight}, and to each sum and product of {of}{SCALED}"]
        return [f"{ALONE}{of}{SCALED}"]
    if isinstance(aggregation, DeviationProducts):
        of = ", ".join(words(node) for node in aggregation.columns)
        quarter = f"{aggregation.max_rows / 4:g}"
        return [f"at most {quarter} times the ranges to each sum of products of the deviations of {of}"]
    if isinstance(aggregation, UnitProducts) and aggregation.max_rows > 1:
        of = ", ".join(words(node) for node in aggregation.columns)
        limits = [feature for feature in query.features[first : first + count] if isinstance(feature, ValueFeature)]
        most = ", ".join(f"{feature.magnitude:.6g}" for feature in limits)
        once = "once in each group" if query.keys else "once"
        return [f"{once} at most {most} to the products of what its rows add up to, of {of}"]
    if isinstance(aggregation, ScoreSums):
        sums = query.features[first]
        reach = sums.magnitude if isinstance(sums, ValueFeature) else 1.0
        each = "once" if aggregation.part == "products" and aggregation.max_rows > 1 else "for each row"
        return [f"at most {reach:.6g} to each sum of the {aggregation.part} {each}, of columns scaled to -1 ... 1"]
    if isinstance(aggregation, ModelLoss):
        return ["1 to the count for each row, and at most 0.5 to the sum of prediction errors minus 0.5"]
    return [_feature(feature, cumulative=query.is_cumulative) for feature in query.features[first : first + count]]


def _feature(feature: Feature, *, cumulative: bool) -> str:
    match feature:
        case UnitFeature():
            return "1 once, whatever the number of its rows"
        case CountFeature() if cumulative:
            return "1 for each row to the count of its group and of every later one"
        case CountFeature():
            return "1 to the count for each row"
        case TreeFeature():
            return f"1 for each row on each of {feature.levels} levels of a tree"
        case GradientFeature():
            each = f" to each of {feature.chains}" if feature.chains > 1 else ""
            return f"a gradient of norm at most {feature.gradient.clip_norm:g}{each}"
        case ValueFeature():
            reach = f"{float(feature.row_limit * feature.unit * feature.weight):.6g}"
            less = f" minus {feature.middle:.6g}" if feature.centre else ""
            return f"at most {reach} to the sum of {words(feature.expression)}{less} for each row"


def _clipped(query: LinearQuery, unit: PrivacyUnit) -> str:
    texts = [
        f"{words(feature.expression)} to {feature.low:g} ... {feature.high:g}"
        for feature in query.features
        if isinstance(feature, ValueFeature | TreeFeature)
        and not isinstance(feature, ModelLossFeature)
        and not (isinstance(feature, TreeFeature) and feature.whole and not feature.pieces)
        if not any(isinstance(part, SUMMARISED) for part, _, _ in query.parts)
    ]
    texts += [
        f"the gradient of a unit, summed over its rows, to a norm of {feature.gradient.clip_norm:g}"
        for feature in query.features
        if isinstance(feature, GradientFeature)
    ]
    if unit.column is not None:
        texts.append(f"the contribution of one {unit.noun}: {describe_bounds(query.contribution_bounds)}")
    return "; ".join(dict.fromkeys(texts)) or "nothing"


def _worst(query: LinearQuery, cells: int) -> str:
    limits = query.contribution_bounds
    counted, norm = rows_squared(limits, cells), float(max_norm_squared(limits, cells)) ** 0.5
    if query.clip_squared is not None:
        return f"its vector is scaled down to {norm:.4g} times the longest row"
    if counted == 1:
        return "one row in the first group" if query.is_cumulative else "one row at its bounds"
    if query.is_cumulative:
        return "all of its rows in the first groups"
    per_group = limits.max_rows_per_group if limits.max_rows_per_group is not None else limits.max_rows
    return f"its rows at their bounds, {per_group} in one group: {norm:.4g} times one row"


def _scale(feature: Feature, query: LinearQuery) -> str:
    scale = float(query.l2_sensitivity_squared) ** 0.5 * float(feature.unit)
    match feature:
        case ModelLossFeature():
            return f"{scale:.4g} in the sum of prediction errors"
        case GradientFeature():
            return f"{scale:.4g} in each number of a gradient"
        case ValueFeature():
            if isinstance(feature, UnitValueFeature) or isinstance(query.plan.aggregation, UnitProducts):
                return f"{scale / feature.high:.4g} times the bound of each sum of products"
            return f"{scale:.4g} in the sum of {words(feature.expression)}"
        case TreeFeature():
            return f"{scale:.4g} in each node of the tree"
        case UnitFeature():
            return f"{scale:.4g} in the number of units"
        case CountFeature() if query.is_cumulative:
            scales = scale * prefix_sum_scales(query.cells)
            return f"{scales[0]:.4g} in the first cumulative number of rows, rising to {scales[-1]:.4g} in the last"
        case CountFeature():
            of = f" with each value of {', '.join(map(words, feature.split.by))}" if feature.split.by else ""
            return f"{scale:.4g} in the number of rows{of}"
