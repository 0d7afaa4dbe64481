"""The query of a description of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from dpnb.query.query import Query
from dpnb.results.preview import PreviewTarget
from dpnb.results.studies.table_one import TableOne


class TableOneQuery(Query):
    """The first table of a study, as a query.  Free until it is released.

    Examples
    --------
    >>> query = df.table_one(by="plan", columns=["age"])
    >>> query.release(mu=0.3).to_frame().index.tolist()
    [('', 'n'), ('age', 'mean'), ('age', 'std')]
    """

    __slots__ = ()

    _released_type = TableOne

    if TYPE_CHECKING:

        def release(self, **target: Unpack[PreviewTarget]) -> TableOne:
            """As `Query.release`."""
