"""The methods of a query that select the largest groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dpnb._core.largest_groups.query import LargestGroups
from dpnb._core.selection.terms import counts_groups
from dpnb._plan.measurements import AnyView
from dpnb._plan.plan import Plan
from dpnb._plan.unreleased import Unreleased

VALUES = ("head", "nlargest", "sort_values")
"""Methods of an answer that are often called for the keys of the largest groups."""


class SelectionRunner(Protocol):
    """The part of a session that selects."""

    def largest_groups(self, plan: Plan, view: AnyView, winners: object, verb: str) -> LargestGroups:
        """The selection of the largest groups of a count."""
        ...


class SelectionMethods(Unreleased):
    """The methods of a query that select the largest groups."""

    __slots__ = ()

    if TYPE_CHECKING:  # of the query
        plan: Plan
        view: AnyView

        @property
        def runner(self) -> SelectionRunner: ...

    def top(self, k: int) -> LargestGroups:
        """The keys of the `k` largest groups of a count, without the counts; free until it is released.

        The groups are selected with noise, by permute-and-flip, and charged in pure DP: see `LargestGroups.release`.
        The counts of the selected groups are a second query, as in ``df.groupby("plan", keys=top.keys).size()``.  The
        preview compares this with a release of all counts at the same cost, which often ranks the groups better; a
        selection is better where one unit can be in many groups.

        Parameters
        ----------
        k : int
            From 1 to the number of groups.

        Raises
        ------
        PlanError
            The query is not a count of rows or of units in groups with public keys, or `k` is out of range.

        Examples
        --------
        >>> largest = df.groupby("plan").size().top(1)
        >>> largest.description
        'largest group by count of rows by plan'
        >>> len(largest.release(epsilon=0.1))
        1
        """
        return self.runner.largest_groups(self.plan, self.view, k, "top")

    def idxmax(self) -> LargestGroups:
        """The key of the largest group of a count, as ``top(1)``; of other queries, the largest released estimate.

        Raises
        ------
        PlanError
            There is only one group.
        NotReleasedError
            The query is not a count in groups: release it, and call ``.estimate.idxmax()`` of the answer.

        Examples
        --------
        >>> df["plan"].value_counts().idxmax().release(epsilon=0.1).key in ("free", "paid")
        True
        """
        if not counts_groups(self.plan, self.view):
            self._refuse(".estimate.idxmax()")
        return self.runner.largest_groups(self.plan, self.view, 1, "idxmax")

    def _alternative_words(self, name: str) -> str:
        if name in VALUES and counts_groups(self.plan, self.view):
            return "; .top(3) selects only the keys of the largest groups"
        return ""
