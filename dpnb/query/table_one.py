"""The query of a description of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from dpnb._core.core import SessionCore
from dpnb._plan.measurements import AnyView, TableOneView
from dpnb._plan.plan import Plan
from dpnb.query.query import Query, checked_query
from dpnb.query.regression import regression_or_query
from dpnb.results.preview import PreviewTarget
from dpnb.results.studies.table_one import TableOne


class TableOneQuery(Query):
    """The first table of a study, as a query.  Free until it is released.

    Examples
    --------
    >>> query = persons.table_one(by="plan", columns=["age"])
    >>> query.release(mu=0.3).to_frame().index.tolist()
    [('', 'n'), ('age', 'mean'), ('age', 'std')]
    """

    __slots__ = ()

    _released_type = TableOne

    if TYPE_CHECKING:

        def release(self, **target: Unpack[PreviewTarget]) -> TableOne:
            """As `Query.release`."""


def query_of(runner: SessionCore, plan: Plan, view: AnyView) -> Query:
    """A checked query, with the methods of its answer."""
    if not isinstance(view, TableOneView):
        return regression_or_query(runner, plan, view)
    checked = checked_query(runner, plan, view)
    return TableOneQuery(checked.plan, checked.view, checked.runner)
