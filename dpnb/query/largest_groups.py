"""The selection of the largest groups, before it is released; and the methods of a query that make it."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict, Unpack, overload

from dpnb._core.batches import SelectionPipeline
from dpnb._core.core import SessionCore
from dpnb._core.execution.selections import SelectionTerms, counts_groups, selection_terms
from dpnb._plan.measurements import AnyView
from dpnb._plan.plan import Plan
from dpnb._plan.unreleased import Unreleased
from dpnb._target import checked_loss, named_arguments
from dpnb.accounting.exact import Number
from dpnb.copying import NotCopyable, safe_repr
from dpnb.errors import DpnbError, RequestError
from dpnb.render.page import with_timestamp
from dpnb.results.display import Displayed, to_html
from dpnb.results.selection import SelectedGroups, SelectionPreview, SelectionPreviews

PREVIEWED: tuple[Number, ...] = ("0.01", "0.02", "0.05", "0.1", "0.2", "0.5")
"""The epsilons that a preview without arguments shows."""


class PreviewedOnDisplay(Unreleased, NotCopyable):
    """Base class of what is displayed as its preview without arguments; a display never raises."""

    __slots__ = ()

    if TYPE_CHECKING:  # of each subclass

        def preview(self) -> Displayed:
            """Cost and expected error of a release."""

    def _static(self) -> Displayed | DpnbError:
        """The preview without arguments."""
        try:
            return self.preview()
        except DpnbError as error:
            return error

    @safe_repr
    def __repr__(self) -> str:
        return f"<query: {self.description}; .preview() is free, .release(share=...) is charged>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self) if cycle else str(self._static()))

    def _repr_html_(self) -> str:
        """The preview without arguments, for front ends without widgets."""
        return with_timestamp(to_html(self._static()))


class OtherAmounts(TypedDict, total=False):
    """The targets of other releases, which a selection refuses."""

    mu: Number
    rho: Number
    share: Number


class LargestGroups(PreviewedOnDisplay):
    """The selection of the largest groups of a count.  Free until it is released.

    Made by :meth:`Query.top` and :meth:`Query.idxmax`.

    Parameters
    ----------
    terms : SelectionTerms
        What is selected.
    pipeline : SelectionPipeline
        The selections of the session.

    Examples
    --------
    >>> largest = df.groupby("plan").size().top(1)
    >>> largest.description
    'largest group by count of rows by plan'
    >>> largest.release(epsilon=0.1).key in ("free", "paid")
    True
    """

    __slots__ = ("_pipeline", "_terms")

    _release_example: ClassVar[str] = ".release(epsilon=0.1)"
    _released_type = SelectedGroups

    def __init__(self, terms: SelectionTerms, pipeline: SelectionPipeline) -> None:
        self._terms, self._pipeline = terms, pipeline

    @property
    def description(self) -> str:
        """The selection in words."""
        return self._terms.description

    @overload
    def preview(self, *, epsilon: Number, within: None = None) -> SelectionPreview: ...
    @overload
    def preview(self, *, epsilon: None = None, within: Number) -> SelectionPreview: ...
    @overload
    def preview(
        self, *, epsilon: list[Number] | tuple[Number, ...] | None = None, within: None = None
    ) -> SelectionPreviews: ...
    @named_arguments
    def preview(
        self,
        *,
        epsilon: Number | list[Number] | tuple[Number, ...] | None = None,
        within: Number | None = None,
        **others: Unpack[OtherAmounts],
    ) -> SelectionPreview | SelectionPreviews:
        """Cost and reliability of a release with the same arguments; free, and without the table.

        Parameters
        ----------
        epsilon : Number or list of them, optional
            The loss, in pure DP; a list gives a table.  Without arguments, the table shows several.
        within : Number, optional
            As for `release`.
        **others
            Refused, as by `release`.

        Raises
        ------
        RequestError, InvalidValueError
            As for `release`.

        Examples
        --------
        >>> preview = df.groupby("plan").size().top(1).preview(within=100)
        >>> preview.shortfall <= 100
        True
        >>> len(df.groupby("plan").size().top(1).preview())
        6
        """
        if epsilon is None and within is None and not others:
            epsilon = PREVIEWED
        if isinstance(epsilon, list | tuple):
            if not epsilon:
                raise RequestError("preview: epsilon must name at least one amount; got an empty list")
            return SelectionPreviews(
                tuple(
                    self._pipeline.preview(self._terms, self._epsilon("preview", amount, within, **others))
                    for amount in epsilon
                )
            )
        return self._pipeline.preview(self._terms, self._epsilon("preview", epsilon, within, **others))

    @named_arguments
    def release(
        self, *, epsilon: Number | None = None, within: Number | None = None, **others: Unpack[OtherAmounts]
    ) -> SelectedGroups:
        """Select the groups, and charge the loss.

        The identical selection returns the recorded keys at no cost, in any kernel.  A selection with another number of
        groups or another epsilon is a new one, charged in full.

        Parameters
        ----------
        epsilon : Number, optional
            The most that is charged: as much as for a mechanism in pure DP with epsilon/k for each of the k groups.
            Permute-and-flip is such a mechanism.  The exponential mechanism has up to twice that epsilon, and is
            charged by its range; it is used where it falls short by less at no higher charge, not where the budget
            counts epsilon.  Exactly one of `epsilon` and `within` is required.
        within : Number, optional
            The largest shortfall: with 95% confidence no selected count is further below the largest of the groups not
            selected before it, in rows or units.  The smallest sufficient epsilon is charged.
        **others
            ``mu``, ``rho`` and ``share`` of other releases are refused: a selection has no Gaussian noise.

        Returns
        -------
        SelectedGroups
            The keys, without counts.

        Raises
        ------
        BudgetExceeded
            The filter refuses; nothing was charged.
        RequestError
            There is not exactly one of the arguments, or accounting is individual.
        InvalidValueError
            A number is out of range.
        ExecutionError
            The selection failed after the charge; the charge stands, and the same request resumes it.

        Examples
        --------
        >>> top = df.groupby("plan").size().top(2).release(epsilon=0.1)
        >>> sorted(top.keys)
        ['free', 'paid']
        >>> session.headroom < 1
        True
        """
        return self._pipeline.release(self._terms, self._epsilon("release", epsilon, within, **others))

    def _epsilon(
        self, verb: str, epsilon: Number | None, within: Number | None, **others: Unpack[OtherAmounts]
    ) -> Fraction:
        """The requested loss, validated."""
        for name in others:
            if name not in OtherAmounts.__annotations__:
                raise RequestError(f"{verb}: has no argument {name}=; write for example .{verb}(epsilon=0.1)")
        if others or (epsilon is None) == (within is None):
            names = {"epsilon": epsilon, "within": within, **others}
            given = " and ".join(f"{name}=" for name, value in names.items() if value is not None) or "no loss"
            raise RequestError(
                f"{self.description}: takes an epsilon; got {given}; give epsilon=, or within= for the largest "
                f"shortfall in {self._terms.unit}; .preview() shows the share of the budget that each epsilon costs"
            )
        if within is not None:
            return checked_loss(self._terms.epsilon_within(within), "epsilon")
        return checked_loss(epsilon, "epsilon")

    @safe_repr
    def __repr__(self) -> str:
        return f"<query: {self.description}; .preview() is free, .release(epsilon=...) is charged>"


# --- the methods of a query that select the largest groups ------------------------------------------------------------


VALUES = ("head", "tail")
"""Methods of an answer that are often called for the keys of the largest groups."""


class SelectionMethods(PreviewedOnDisplay):
    """The methods of a query that select the largest groups."""

    __slots__ = ()

    if TYPE_CHECKING:  # of the query
        plan: Plan
        view: AnyView
        runner: SessionCore

    def top(self, k: int) -> LargestGroups:
        """The keys of the `k` largest groups of a count, without the counts; free until it is released.

        The groups are selected with noise, by permute-and-flip or by the exponential mechanism, whichever falls short
        by less at the same cost: see `LargestGroups.release`.  The counts of the selected groups are a second query, as
        in ``df.groupby("plan", keys=top.keys).size()``.  The preview compares this with a release of all counts at the
        same cost, which often ranks the groups better; a selection is better where one unit can be in many groups.

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
        return self._largest_groups(k, "top")

    def _largest_groups(self, winners: object, verb: str) -> LargestGroups:
        filter_ = self.runner.account.guarantee.initial_filter
        terms = selection_terms(self.runner.tables.compile(self.plan), self.view, winners, verb, filter_)
        return LargestGroups(terms, self.runner.selections)

    def _alternative_words(self, name: str) -> str:
        if name in VALUES and counts_groups(self.plan, self.view):
            return "; .top(3) selects only the keys of the largest groups"
        return ""
