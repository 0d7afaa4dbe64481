"""A released answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from dpnb.accounting.losses import GDP
from dpnb.answer import faces
from dpnb.answer.figures import Figures
from dpnb.query.aggregations import AnyView, Shares
from dpnb.query.plan import Plan


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Answer(Figures):
    """Estimates with intervals, and what they cost.

    Parameters
    ----------
    plan : Plan
        What was measured.
    view : View
        What was read off.
    cost : GDP
        What this request was charged when it was first made; 0 if it was known already.
    cost_share : float
        The same as a share of the whole budget, rounded up.
    known : GDP
        How well the question is known with this answer, earlier looks included.
    looks : int
        Measurements that are combined in it.
    time : str
        When it was first asked and paid; UTC.
    refine : callable
        ``answer.refine(within=0.1)`` or any other target: the same question, known better, for the difference in cost;
        with ``groups=[...]`` only some of its groups.
    read : callable
        Reads another view off the same measurements.
    """

    plan: Plan
    view: AnyView
    cost: GDP
    cost_share: float
    known: GDP
    looks: int
    time: str
    refine: Callable[..., Answer] = field(repr=False)
    read: Callable[[AnyView], Answer] = field(repr=False)

    def share(self) -> Answer:
        """Each group as a share of all of them: free, with the interval of the joint noise.

        Raises
        ------
        PlanError
            The answer is not of counts or sums by group.
        """
        return self.read(Shares())

    def _content(self) -> tuple[object, ...]:
        return *super()._content(), self.plan, self.cost, self.known, self.time

    @property
    def footer(self) -> list[str]:
        """Cost and provenance."""
        when = self.time[:16].replace("T", " ")
        parts = [f"cost {faces.price(self.cost, self.cost_share)}", f"asked {when} UTC"]
        if self.looks > 1:
            parts.append(f"{self.looks} looks combined")
        return [*parts, *super().footer]
