"""Cost and expected error of a release.  Free: computed from schema, plan, budget and released values only."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

import numpy as np

from dpnb._plan.plan import Plan
from dpnb._plan.unreleased import Unreleased
from dpnb._target import TargetKind, Within, named_arguments
from dpnb.accounting.exact import Number
from dpnb.accounting.losses import GDP
from dpnb.results.display import Displayed
from dpnb.results.estimates.noisy import Cells
from dpnb.results.tables.index import pandas_index
from dpnb.schema import Key

if TYPE_CHECKING:
    import pandas as pd


GAIN = 0.25
"""By how much a refinement narrows the widest interval at least, to be proposed."""

CLEAR, HARDLY_CLEAR = 8.0, 3.0
"""The clearness at which coefficients are mostly known, although two predictors have a correlation of 0.8; and that
below which they are mostly unknown then.  Without any correlation they are known from about 1."""

Amounts = dict[TargetKind, Any]
"""The target of a preview as written, by its kind: an amount, a list of them, or None."""


class PreviewOptions(TypedDict, total=False):
    """The arguments of a preview other than its target, for its overloads."""

    confidence: Number
    simultaneous: bool
    final: bool
    groups: object


class PreviewTarget(PreviewOptions, total=False):
    """One target."""

    mu: Number | None
    rho: Number | None
    epsilon: Number | None
    share: Number | None
    within: Within | None


class PreviewTargets(PreviewOptions, total=False):
    """Several amounts of one target."""

    mu: Sequence[Number]
    rho: Sequence[Number]
    epsilon: Sequence[Number]
    share: Sequence[Number]
    within: Sequence[Within]


@dataclass(frozen=True)
class CountNeeded:
    """The count of rows whose release makes an unknown expected error known.

    Parameters
    ----------
    plan : Plan
        What is counted: the same rows in the same groups.
    description : str
        The count in words.
    code : str or None
        Code that makes the query; None if it takes more than a line.

    Examples
    --------
    >>> preview = df[df["age"] > 65]["cost"].mean().preview(mu=0.1)
    >>> preview.count_needed is not None
    True
    """

    plan: Plan
    description: str
    code: str | None


@dataclass(frozen=True, repr=False)
class Preview(Unreleased, Displayed):
    """Cost and expected error of one target.

    Parameters
    ----------
    description : str
        The query in words.
    request : str
        The target as it was written.
    total_loss : GDP
        The loss of the query after the release, with all its observations.
    cost : GDP
        The charge of the release; less than `total_loss` if the query has earlier observations.
    cost_fraction : float
        The cost as a fraction of the whole budget, rounded up; above 1 if the whole budget would not cover it, NaN
        without a budget.
    confidence : float
    half_widths : float64 array or None
        Expected half-widths of the intervals, shape (groups, outputs); None where they depend on a quantity that has
        not been released.
    least_half_widths : float64 array or None
        Expected half-widths if each unit has as many rows as count, where the number of rows is not known and
        `half_widths` are those if it has one; None otherwise.
    error_unit : str or None
        Unit of the errors: that of the answer, except rows of rank for quantiles; None for numbers without a unit.
    names, keys, outputs
        Names and labels of the groups and outputs, as in the answer.
    headroom_after : float
        Fraction of the budget that would remain, rounded down; 0 if the release does not fit, NaN without a budget.
    fits : bool
        Whether the filter would admit the release now.
    max_mu : float or None
        The largest mu that would fit, rounded down, 0 if none; None if the target itself fits.
    max_repetitions : int or None
        How many queries at this cost the filter would admit; None without a budget, or if the cost is 0.
    contribution : str
        What one privacy unit can change, in words.
    left_out : tuple of (str, str)
        Which rows the answer does not count: those beyond the limits of a privacy unit, and those with missing values
        where pandas would count them.  Heading and text of each.
    refinement_note : str or None
        What refining this answer later would cost, if that is more than requesting the smaller error at once.
    assumption : str or None
        The public or released quantities from which the expected errors are computed.
    assumed_description : str or None
        What the expected errors assume that is neither released nor public, as a clause; shown next to them.
    current_half_widths : float64 array or None
        Current half-widths, of the same shape as `half_widths`; None without earlier observations to combine with.
    half_widths_in_one_release : float64 array or None
        Half-widths that a single release at `total_loss` would have had, which are smaller: of a refinement, else None.
    notice : str or None
        Warning that the session is a rehearsal, is not private or has no budget.
    participation : str or None
        Which units would be counted, under individual accounting.
    count_needed : CountNeeded or None
        The count to release first, after which the expected errors are known; None if they are known, or if a count is
        not enough.
    clearness : float or None
        For a regression whose errors are forecast for typical values, how clear the predictors' variation is of the
        noise, in proportion to mu: below `CLEAR`, coefficients are unknown where predictors are related closely.
    layout : tuple of (tuple of str, tuple of str) or None
        Columns and statistics, if the outputs are every statistic of every column; None otherwise.
    parts : tuple of (str, str)
        The price of each part, in words, if the release makes several charges one after another.
    output_units : tuple of str or None
        For statistics side by side, the unit of each one's error where it is rows of rank, else None.
    rank_note : str or None
        For quantiles, what the errors in rank leave out, as a clause; shown next to the expected errors.

    Examples
    --------
    >>> preview = df.count().preview(mu=0.1)
    >>> preview.cost, preview.fits, round(preview.expected_error)
    (GDP(mu=0.1), True, 41)
    """

    description: str
    request: str
    total_loss: GDP
    cost: GDP
    cost_fraction: float
    confidence: float
    half_widths: Cells | None
    error_unit: str | None
    names: tuple[str, ...]
    keys: tuple[tuple[Key, ...], ...]
    outputs: tuple[str, tuple[Key, ...]] | None
    headroom_after: float
    fits: bool
    max_mu: float | None
    max_repetitions: int | None
    contribution: str
    refinement_note: str | None
    assumption: str | None
    assumed_description: str | None
    current_half_widths: Cells | None
    notice: str | None
    half_widths_in_one_release: Cells | None = None
    least_half_widths: Cells | None = None
    participation: str | None = None
    count_needed: CountNeeded | None = None
    output_units: tuple[str | None, ...] = ()
    rank_note: str | None = None
    left_out: tuple[tuple[str, str], ...] = ()
    parts: tuple[tuple[str, str], ...] = ()
    clearness: float | None = None
    layout: tuple[tuple[str, ...], tuple[str, ...]] | None = None

    _kind = "a preview"

    @property
    def doubt(self) -> str:
        """Whether the coefficients of a regression are unknown: "possible" or "probable"; empty otherwise."""
        if self.clearness is None or self.clearness >= CLEAR:
            return ""
        return "possible" if self.clearness >= HARDLY_CLEAR else "probable"

    @property
    def has_budget(self) -> bool:
        """Whether the session has a budget, of which the release takes a part."""
        return not math.isnan(self.headroom_after)

    @property
    def narrows_interval(self) -> bool:
        """Whether any interval is expected to become narrower than it is now.

        A further observation shares its error probability with the first, so a small one costs without narrowing any.
        """
        if self.half_widths is None or self.current_half_widths is None or not self.cost.mu_squared:
            return True
        return bool((self.half_widths < self.current_half_widths * (1 - 1e-9)).any())

    @property
    def gain(self) -> float | None:
        """How much narrower a refinement makes the widest interval, as a fraction of its width now; None otherwise.

        Of several statistics, that which gains most; 1 if an error becomes known.
        """
        if self.half_widths is None or self.current_half_widths is None or not self.cost.mu_squared:
            return None
        return gain(self.current_half_widths, self.half_widths, self.outputs)

    @property
    def expected_error(self) -> float | None:
        """Expected half-width of the interval of the worst group; None if it is unknown, or for mixed units."""
        if self.half_widths is None or (self.outputs and self.outputs[0] == "statistic"):
            return None
        return float(np.max(self.half_widths))

    @property
    def expected_errors(self) -> pd.Series | None:
        """Expected half-width for each group and output; None if unknown."""
        import pandas as pd  # imported when first used

        if self.half_widths is None:
            return None
        index = pandas_index(self.names, self.keys, self.outputs)
        return pd.Series(self.half_widths.ravel().copy(), index=index, name="expected error")


def gain(now: Cells, then: Cells, outputs: tuple[str, tuple[Key, ...]] | None) -> float:
    """How much narrower the widest interval becomes, as a fraction of its width now: see `Preview.gain`."""
    if not (outputs and outputs[0] == "statistic"):
        now, then = now.reshape(-1, 1), then.reshape(-1, 1)
    known = np.isfinite(now)
    if (np.isfinite(then) & ~known).any():
        return 1.0
    widest = np.max(now, axis=0, initial=0, where=known)
    with np.errstate(invalid="ignore"):
        gains = 1 - np.max(then, axis=0, initial=0, where=known) / widest
    return float(np.max(gains, initial=0, where=widest > 0))


@dataclass(frozen=True, repr=False)
class Previews(Unreleased, Displayed):
    """Cost and expected error of several targets side by side.

    Parameters
    ----------
    previews : tuple of Preview
        Previews of one query, one for each target.

    Examples
    --------
    >>> len(df["age"].mean().preview(mu=[0.05, 0.1]).to_pandas())
    2
    """

    previews: tuple[Preview, ...]

    _kind = "a preview"

    def _query_words(self) -> str:
        return self.previews[0].description

    def __iter__(self) -> Iterator[Preview]:
        return iter(self.previews)

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        return len(self.previews)

    def __getitem__(self, index: int) -> Preview:
        return self.previews[index]

    def to_pandas(self) -> pd.DataFrame:
        """One row for each target: cost, expected error (of the worst group), headroom after, and whether it fits.

        Examples
        --------
        >>> df["age"].mean().preview(mu=[0.05, 0.1]).to_pandas().shape[0]
        2
        """
        import pandas as pd  # imported when first used

        columns = {
            "mu": [preview.cost.mu for preview in self.previews],
            "cost_fraction": [preview.cost_fraction for preview in self.previews],
            "expected_error": [preview.expected_error for preview in self.previews],
            "headroom_after": [preview.headroom_after for preview in self.previews],
            "fits": [preview.fits for preview in self.previews],
        }
        return pd.DataFrame(columns, index=pd.Index([preview.request for preview in self.previews], name="request"))


class Previewable:
    """What can be previewed: a query, and an answer that can be refined."""

    __slots__ = ()

    if TYPE_CHECKING:  # of each subclass

        def _preview_of(self, amounts: Amounts, options: dict[str, Any]) -> Preview | Previews:
            """The preview of the arguments of `preview`: the amounts, and the other ones."""

    @overload
    def preview(self, **options: Unpack[PreviewOptions]) -> Previews: ...
    @overload
    def preview(self, **target: Unpack[PreviewTarget]) -> Preview: ...
    @overload
    def preview(self, **targets: Unpack[PreviewTargets]) -> Previews: ...
    @named_arguments
    def preview(
        self,
        *,
        mu: Any = None,
        rho: Any = None,
        epsilon: Any = None,
        share: Any = None,
        within: Any = None,
        confidence: Number = 0.95,
        simultaneous: bool = False,
        final: bool = False,
        groups: object = None,
    ) -> Preview | Previews:
        """Cost, expected error and remaining budget of a release with the same arguments; free, and without the table.

        For an answer, of refining it: the errors are shown as "now ± 0.54 -> ± 0.40".

        A list of amounts, as in ``preview(mu=[0.1, 0.2, 0.5])``, gives a table; without a target, the table shows
        several shares of the remaining budget, or several values of mu without a budget.

        Parameters
        ----------
        mu, rho, epsilon, share, within : Number, mapping or list of them, optional
            The target, as for `dpnb.Query.release`: at most one of them.
        confidence, simultaneous, final, groups : optional
            As for `dpnb.Query.release`.

        Raises
        ------
        RequestError, InvalidValueError, ErrorEstimateUnavailable
            As for `dpnb.Query.release`.

        Examples
        --------
        >>> query = df["age"].mean()
        >>> query.preview(mu=0.1).cost
        GDP(mu=0.1)
        >>> len(query.preview(mu=[0.05, 0.1]).to_pandas())
        2
        >>> query.release(mu=0.1).preview(mu=0.4).gain > 0.25
        True
        """
        options = {"confidence": confidence, "simultaneous": simultaneous, "final": final, "groups": groups}
        amounts: Amounts = {"mu": mu, "rho": rho, "epsilon": epsilon, "share": share, "within": within}
        return self._preview_of(amounts, options)
