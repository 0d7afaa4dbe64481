"""Queries that also measure the sampling error of a sum, mean or ratio."""

from __future__ import annotations

import msgspec

from dpnb._core.pricing.influence import with_products
from dpnb._plan.measurements import StandardErrorView
from dpnb.errors import PlanError
from dpnb.query.query import Query, checked_query


def with_population(query: Query, wanted: object) -> Query:
    """The query with the measurement of its sampling error, if that is wanted and does not follow from the answer."""
    if not isinstance(wanted, bool):
        raise PlanError(f"population: must be True or False; got {wanted!r}")
    return _measured(query) if wanted else query


def standard_error(query: Query) -> Query:
    """The standard error of a mean."""
    plan = _measured(query, always=True).plan
    return checked_query(query.runner, plan, StandardErrorView())


def _measured(query: Query, *, always: bool = False) -> Query:
    tables = query.runner.tables
    compiled, source = tables.compile(query.plan), query.plan.source
    aggregation = with_products(compiled, tables.unit(source), tables.schema(source), always=always)
    if aggregation is None:
        return query
    return checked_query(query.runner, msgspec.structs.replace(query.plan, aggregation=aggregation), query.view)
