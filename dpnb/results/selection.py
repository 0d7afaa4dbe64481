"""The result of a selection: keys of groups, without their counts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpnb.accounting.losses import GDP, Loss
from dpnb.errors import AnswerAttributeError, RequestError
from dpnb.results.display import Displayed
from dpnb.results.tables.index import pandas_index
from dpnb.schema import Key

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class SelectedGroups(Displayed):
    """The keys of the largest groups, in the order in which they were selected.

    It contains no counts: those are a second query, as in ``df.groupby("plan", keys=top.keys).size()``.  Groups whose
    counts are close may be swapped or replaced by one another; `shortfall` states how close.

    Parameters
    ----------
    description : str
        The selection in words.
    names : tuple of str
        Names of the levels of the groups.
    group_keys : tuple of tuple
        The keys, one value for each level.
    is_single : bool
        Whether the result is of ``idxmax``, and so one key.
    epsilon : Fraction
        What was requested.
    cost : Loss
        The loss of the selection, which costs at most what pure DP with `epsilon` does.
    cost_fraction : float
        The charge as a fraction of the whole budget, rounded up.
    cost_text : str
        The charge in words, of the budget or of its reserve in pure DP.
    shortfall : float
        With this confidence, no selected count is further below the largest of those not selected before it.
    unit : str
        What is counted: rows or privacy units.
    reliability : str
        The same in words.
    confidence : float
    mechanism : str
        By which mechanism the groups were selected, and why, in words.
    code : str or None
        Code of the query of the counts; None if it takes more than a line.
    notice : str or None
        Warning that the session is a rehearsal or not private.
    left_out : tuple of (str, str)
        Which rows are not counted, as in `dpnb.Preview`.
    time : str
        Time of the charge; UTC, ISO 8601.

    Examples
    --------
    >>> top = df.groupby("plan").size().top(1).release(epsilon=0.1)
    >>> len(top), top.index.name
    (1, 'plan')
    >>> df.groupby("plan", keys=top.keys).size().description
    'count of rows by plan'
    """

    description: str
    names: tuple[str, ...]
    group_keys: tuple[tuple[Key, ...], ...]
    is_single: bool
    epsilon: Fraction
    cost: Loss
    cost_fraction: float
    cost_text: str
    shortfall: float
    unit: str
    reliability: str
    confidence: float
    mechanism: str
    code: str | None = None
    notice: str | None = None
    left_out: tuple[tuple[str, str], ...] = ()
    time: str = ""

    @property
    def keys(self) -> list[Key | tuple[Key, ...]]:
        """The keys, the largest group first; tuples if there are several levels."""
        return [key[0] if len(key) == 1 else key for key in self.group_keys]

    @property
    def key(self) -> Key | tuple[Key, ...]:
        """The key of the largest group, as of ``idxmax``.

        Raises
        ------
        RequestError
            Several groups were selected.
        """
        if len(self.group_keys) != 1:
            raise RequestError(
                f"key: is for one group; got {len(self.group_keys)}; use .keys, or .keys[0] for the first of them"
            )
        return self.keys[0]

    @property
    def index(self) -> pd.Index:
        """The keys as an index of pandas, the largest group first."""
        return pandas_index(self.names, self.group_keys, None)

    def __len__(self) -> int:
        """The number of selected groups."""
        return len(self.group_keys)

    def __iter__(self) -> Iterator[Key | tuple[Key, ...]]:
        """The keys, the largest group first."""
        return iter(self.keys)

    def __contains__(self, key: object) -> bool:
        """Whether the group with this key was selected."""
        return key in self.keys

    def __getitem__(self, index: int) -> Key | tuple[Key, ...]:
        """A key by its position in the order."""
        return self.keys[index]

    if not TYPE_CHECKING:  # a type checker refuses what is not offered, and names it

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or name in dir(type(self)) or name in self.__dataclass_fields__:
                raise AttributeError(name)  # also while a debugger shows an object whose `__init__` has not finished
            counts = f", as in {self.code}" if self.code else ""
            raise AnswerAttributeError(
                f".{name} of {self.description}: is not offered by a selection, which has .keys and .index and no "
                f"counts; release these by a second query{counts}"
            )


@dataclass(frozen=True, repr=False)
class SelectionPreview(Displayed):
    """Cost and reliability of a selection.  Free: computed from schema, plan, budget and ledger only.

    Parameters
    ----------
    description : str
        The selection in words.
    epsilon : Fraction
        What was requested.
    loss : Loss
        The loss of the selection, which costs at most what pure DP with `epsilon` does.
    mechanism : str
        By which mechanism the groups would be selected, and why, in words.
    cost_fraction : float or None
        The charge as a fraction of the whole budget, rounded up; 0 if the answer is recorded, None if it does not fit.
    cost_text : str or None
        The charge in words, of the budget or of its reserve in pure DP; None if there is none.
    headroom_after : float
        Fraction of the budget that would remain, rounded down; now, if it does not fit; NaN without a budget.
    refusal : str or None
        Why it does not fit.
    is_known : bool
        Whether the identical request was charged before, and so is free.
    shortfall : float
        By how much a selected count may be below the largest of those not selected before it, at that confidence.
    unit : str
        What is counted: rows or privacy units.
    reliability : str
        The same in words.
    confidence : float
    groups : int
        Number of groups among which is selected.
    counts_loss : GDP or None
        The loss for which the counts of all groups could be released at the same cost; None if it is not known.
    counts_shortfall : float or None
        The shortfall of a ranking by these counts, at the same confidence.
    notice : str or None
        Warning that the session is a rehearsal or not private.
    left_out : tuple of (str, str)
        Which rows are not counted, as in `dpnb.Preview`.

    Examples
    --------
    >>> preview = df.groupby("plan").size().top(1).preview(epsilon=0.1)
    >>> preview.fits, preview.epsilon
    (True, Fraction(1, 10))
    """

    description: str
    epsilon: Fraction
    loss: Loss
    mechanism: str
    cost_fraction: float | None
    cost_text: str | None
    headroom_after: float
    refusal: str | None
    is_known: bool
    shortfall: float
    unit: str
    reliability: str
    confidence: float
    groups: int
    counts_loss: GDP | None = None
    counts_shortfall: float | None = None
    notice: str | None = None
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the filter would admit the selection now."""
        return self.refusal is None

    @property
    def has_budget(self) -> bool:
        """Whether a budget limits the privacy loss."""
        return not math.isnan(self.headroom_after)


@dataclass(frozen=True, repr=False)
class SelectionPreviews(Displayed):
    """Cost and reliability of a selection at several epsilons.

    Parameters
    ----------
    previews : tuple of SelectionPreview

    Examples
    --------
    >>> len(df.groupby("plan").size().top(1).preview(epsilon=[0.05, 0.1]))
    2
    """

    previews: tuple[SelectionPreview, ...]

    def __iter__(self) -> Iterator[SelectionPreview]:
        return iter(self.previews)

    def __len__(self) -> int:
        return len(self.previews)

    def __getitem__(self, index: int) -> SelectionPreview:
        return self.previews[index]
