"""A released answer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from dpnb.accounting.losses import GDP
from dpnb.answer import faces
from dpnb.answer.figures import Figures
from dpnb.answer.history import History, fan_html
from dpnb.copying import NotCopyable
from dpnb.errors import DpnbError
from dpnb.query.aggregations import AnyView, Shares
from dpnb.query.plan import Plan


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Answer(NotCopyable, Figures):
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
    worst_case : bool
        Whether the cost is that of a unit which the question touches in full, and others paid less or nothing.
    refine : callable
        ``answer.refine(within=0.1)`` or any other target: the same question, known better, for the difference in cost;
        with ``groups=[...]`` only some of its groups.
    read : callable
        Reads another view off the same measurements.
    past : callable
        The answers after each of its looks, this one's own included.
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
    past: Callable[[], tuple[Answer, ...]] = field(repr=False)
    worst_case: bool = False

    def share(self) -> Answer:
        """Each group as a share of all of them: free, with the interval of the joint noise.

        Raises
        ------
        PlanError
            The answer is not of counts or sums by group.
        """
        return self.read(Shares())

    @property
    def history(self) -> History:
        """What was known after each of its looks: free, from the ledger, without reading a row.

        Raises
        ------
        RequestError
            The answer is a discovery, whose looks cannot be combined.
        """
        return History(self.past())

    def _content(self) -> tuple[object, ...]:
        return *super()._content(), self.plan, self.cost, self.known, self.time

    def _repr_html_(self) -> str:
        fan = ""
        if self.single and self.looks > 1:
            with suppress(DpnbError):  # an answer that was given stays one when its ledger is gone
                fan = fan_html(self.history)
        return faces.figures_html(self, fan)

    @property
    def footer(self) -> list[str]:
        """Cost and provenance."""
        most = "at most " if self.worst_case and self.cost else ""
        parts = [f"cost {most}{faces.price(self.cost, self.cost_share)}", f"asked {faces.moment(self.time)} UTC"]
        if self.looks > 1:
            parts.append(f"{self.looks} looks combined")
        return [*parts, *super().footer]
