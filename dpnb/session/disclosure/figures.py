"""Figures of a statement: guarantee, filter, privacy unit, tables and readings; losses are rounded up."""

from __future__ import annotations

import hashlib
import json
import math
from fractions import Fraction

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.later_sessions import sampled_text
from dpnb._core.ledger_metadata import LedgerMetadata
from dpnb._core.session_explanation import NOTHING_REFUSED, describe_guarantee, participation_description
from dpnb._core.tables import PrivateTables
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.accounting.conversions import epsilon_of_pure_gdp
from dpnb.accounting.exact import MARGIN, binary_up, decimal_sqrt_up, decimal_up, exact
from dpnb.accounting.guarantee import PrivacyGuarantee
from dpnb.errors import printable
from dpnb.render.numbers import format_percent_down, format_percent_up
from dpnb.render.sessions import column_words, unit_words
from dpnb.results.disclosure.parts import (
    CitedCategories,
    Guarantee,
    Implied,
    Readings,
    ReportedColumn,
    ReportedFilter,
    ReportedTable,
    Unit,
)
from dpnb.schema import Categories, ColumnType, Key, Schema
from dpnb.session.gauges import describe_spent

MAX_FACTOR = 1e12
ROUNDING = 1e-12
"""More than the relative error of a few operations on doubles."""

MAX_CATEGORIES, CITED = 20, 3
"""Categories of a column that a statement lists; of more, it cites the first ones and a digest."""

NEIGHBOURS = (
    "Two tables are neighbours if one of them has one unit more than the other, with all rows of that unit, and they "
    "are the same otherwise."
)


def guarantee_of(account: Accountant, metadata: LedgerMetadata) -> Guarantee:
    """What was promised."""
    guarantee, unit = account.guarantee, printable(metadata.tables.words)
    budget, reserve = guarantee.budget, guarantee.budget.pure_epsilon
    epsilon = reserve if budget.is_pure else budget.epsilon
    delta = Fraction(0) if budget.is_pure else None if epsilon is None else budget.delta
    words = describe_guarantee(guarantee, unit)
    if not guarantee.has_budget:
        words = words.replace("None in advance", "There is no guarantee in advance", 1)
    if account.individual:
        words += " Each unit has this budget for itself, and is charged only for the queries that use its data."
    return Guarantee(
        words=words,
        short=printable(guarantee.words),
        fixed_beforehand=guarantee.has_budget,
        epsilon=_up(epsilon),
        delta=_up(delta),
        mu=_mu(guarantee),
        pure_epsilon=decimal_up(reserve),
        discovery_delta=decimal_up(budget.discovery_delta) if guarantee.has_budget else 0.0,
        factor=None if epsilon is None else factor_of(epsilon),
        implied=_implied(account),
        accounting="individual" if account.individual else "worst-case",
        on_exhausted=metadata.on_exhausted,
    )


def _up(number: Fraction | None) -> float | None:
    return None if number is None else decimal_up(number)


def factor_of(epsilon: Fraction) -> float | None:
    """E to the epsilon, rounded up; None if it is so large that it says nothing."""
    if epsilon > math.floor(math.log(MAX_FACTOR)):
        return None
    return math.exp(binary_up(epsilon)) * MARGIN


def _mu(guarantee: PrivacyGuarantee) -> float | None:
    """Mu of the Gaussian part of a GDP filter, rounded up; None for another filter."""
    squared = getattr(guarantee.initial_filter.budget, "mu_squared", None)
    return decimal_sqrt_up(squared) if isinstance(squared, Fraction) and squared else None


def _implied(account: Accountant) -> Implied | None:
    """The (epsilon, delta) that a budget in Gaussian differential privacy implies, at the declared delta."""
    budget, total = account.guarantee.budget.limit, account.delta
    if budget is None or budget.epsilon is not None or not budget.loss.mu_squared:
        return None
    # The deltas of discoveries add to that of the conversion.
    epsilon = epsilon_of_pure_gdp(budget.pure_epsilon, budget.loss.mu_squared, total - budget.discovery_delta)
    return Implied(epsilon, decimal_up(total)) if total < 1 and math.isfinite(epsilon) else None


def outcome_with_unit(guarantee: Guarantee, without: float) -> float | None:
    """A bound on the probability of an outcome from a table with a unit, rounded up; None if nothing but 1 is known.

    What the filter enforces decides how it is computed, so that the whole of a budget and its parts are comparable: in
    Gaussian differential privacy from the trade-off curve, which admits less than the epsilon and delta that it
    implies.  The approximate part of weight d adds at most d: the curve is concave and 0 at 0.

    `without` is the probability of the outcome from the table without the unit.
    """
    from scipy.special import ndtr, ndtri  # imported when first used

    factor, delta, mu = guarantee.factor, guarantee.delta, guarantee.mu
    if mu is not None and not guarantee.pure_epsilon:  # Dong, Roth and Su 2022
        bound = float(ndtr(ndtri(without) + mu)) * (1 + ROUNDING) + guarantee.discovery_delta
    elif mu is not None:  # the guarantee holds at each of these deltas
        bound = min(
            math.exp(epsilon_of_pure_gdp(exact(guarantee.pure_epsilon), exact(mu) ** 2, exact(one))) * without + one
            for one in (1e-6, 1e-3, 1e-2, 0.03, 0.1)
        )
        bound = bound * (1 + ROUNDING) + guarantee.discovery_delta
    elif factor is None or delta is None:
        return None
    else:
        bound = (factor * without + delta) * (1 + ROUNDING)
    return bound if bound < 1 else None


def filter_of(account: Accountant) -> ReportedFilter:
    """How the guarantee is enforced, and how much was charged, without regard to caps."""
    guarantee, filter_ = account.guarantee, account.sync().filter
    spent = describe_spent(filter_, account.budget)
    if not guarantee.has_budget:
        rule = NOTHING_REFUSED.format(spent)
        return ReportedFilter(guarantee.filter_name, "none", guarantee.filter_guarantee, rule, spent, None, None)
    used = decimal_up(1 - exact(filter_.headroom))
    return ReportedFilter(
        name=guarantee.filter_name,
        label=filter_.label,
        enforces=guarantee.filter_guarantee,
        theorem=filter_.theorem,
        spent=spent if not account.individual else f"{spent}, for a unit that every query affects in full",
        spent_share=format_percent_up(used) if used else "0%",
        left_share=format_percent_down(filter_.headroom),
    )


def readings_of(account: Accountant) -> Readings:
    """What has been lost so far: the odometer that was chosen in advance, and beside it what was charged."""
    paused = account.paused
    return Readings(
        time_uniform=None if paused is not None else account.odometer.statement(),
        paused=None if paused is None else printable(paused),
        accumulator=account.accumulator.statement(),
        participation=participation_description(account),
    )


def unit_of(account: Accountant, tables: PrivateTables) -> Unit:
    """Who is protected."""
    drawn = sampled_text(account.sampled).strip("'")
    return Unit(printable(tables.words), NEIGHBOURS, "add or remove one unit", account.public_size, drawn)


def tables_of(tables: PrivateTables) -> tuple[ReportedTable, ...]:
    """The declared tables, by name."""
    return tuple(
        _table(name, tables.units[name], tables.schemas[name], tables.reading.missing)
        for name in sorted(tables.schemas)
    )


def _table(name: str, unit: PrivacyUnit, columns: Schema, missing: tuple[str, ...]) -> ReportedTable:
    limits = unit.contribution_bounds
    return ReportedTable(
        name=printable(name),
        unit=printable(unit_words(unit)),
        unit_column=None if unit.column is None else printable(unit.column),
        max_rows=unit.max_rows,
        max_groups=limits.max_groups,
        max_rows_per_group=limits.max_rows_per_group,
        max_norm=limits.max_norm,
        columns=tuple(_column(column, columns[column], missing) for column in sorted(columns)),
    )


def _column(name: str, declared: ColumnType, missing: tuple[str, ...]) -> ReportedColumn:
    kind, values, outside, counts_as_missing = map(printable, column_words(declared, missing))
    stated: ColumnType | CitedCategories = declared
    if isinstance(declared, Categories) and len(declared.values) > MAX_CATEGORIES:
        stated = CitedCategories(len(declared.values), declared.values[:CITED], _digest(declared.values))
        first = ", ".join(map(repr, stated.first))
        values = printable(f"{stated.count:,} categories, the first of them {first}; SHA-256 {stated.digest}")
    return ReportedColumn(printable(name), kind, values, outside, counts_as_missing, stated)


def _digest(values: tuple[Key, ...]) -> str:
    """The digest of a list of categories, which `CitedCategories` explains."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
