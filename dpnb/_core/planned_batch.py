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
    """The queries of a batch, checked."""

    workload: Workload  # of complete rows
    views: tuple[AnyView, ...]
    requested: tuple[tuple[Plan, AnyView], ...]  # as the analyst wrote them, also about incomplete rows

    @property
    def queries(self) -> Queries:
        """The queries of complete rows with their views."""
        return list(zip(self.workload.queries, self.views, strict=True))

    @property
    def description(self) -> str:
        """The batch in words."""
        return describe_batch(self.queries)
