"""A batch of queries, checked, before it is previewed or released."""

from __future__ import annotations

from dataclasses import dataclass

from dpnb._compile.workload import Workload
from dpnb._core.batch_design import describe_batch
from dpnb._core.batch_target import Queries
from dpnb._plan.measurements import AnyView
from dpnb._plan.plan import Plan


@dataclass(frozen=True)
class PlannedBatch:
    """The queries of a batch, checked.

    Parameters
    ----------
    workload : Workload
        The queries of complete rows.
    views : tuple of View
        Their views.
    requested : tuple of (Plan, View)
        The queries as the analyst wrote them, which may also be about incomplete rows.
    """

    workload: Workload
    views: tuple[AnyView, ...]
    requested: tuple[tuple[Plan, AnyView], ...]

    @property
    def queries(self) -> Queries:
        """The queries of complete rows with their views."""
        return list(zip(self.workload.queries, self.views, strict=True))

    @property
    def description(self) -> str:
        """The batch in words."""
        return describe_batch(self.queries)
