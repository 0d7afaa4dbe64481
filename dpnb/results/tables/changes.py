"""Methods of pandas that select, name or compare the groups of an answer: `loc`, `index`, `idxmax`, `diff`, ..."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dpnb.errors import RequestError
from dpnb.results.tables.index import OfEstimates, order_of, pandas_index
from dpnb.schema import Key, plain, whole_number

if TYPE_CHECKING:
    import pandas as pd

E = TypeVar("E")


class ByKey(Generic[E]):
    """What ``answer.loc`` and ``answer.at`` return: groups by their keys, with their intervals.

    Parameters
    ----------
    estimates : Answer
        The answer.

    Examples
    --------
    >>> answer = df.groupby("plan").size().release(mu=0.1)
    >>> answer.loc["free"].item() == answer["free"].item()
    True
    >>> answer.loc[["paid", "free"]].index.tolist()
    ['paid', 'free']
    """

    def __init__(self, estimates: Any) -> None:
        self._estimates = estimates

    def __getitem__(self, key: Any) -> E:
        own = self._estimates
        if isinstance(key, slice):
            if key.step is not None:
                raise RequestError(f"loc: takes no step; got {key!r}")
            first = 0 if key.start is None else self._row(key.start)
            last = len(own.keys) - 1 if key.stop is None else self._row(key.stop)
            return self._groups(range(first, last + 1))
        if isinstance(key, list):
            return self._groups([self._row(one) for one in key])
        is_cell = isinstance(key, tuple) and len(key) == len(own.names) + 1
        found: E = own[key[:-1] if len(key) > 2 else key[0]][key[-1]] if is_cell else own[key]
        return found

    def _row(self, key: Any) -> int:
        group = tuple(plain(part) for part in key) if isinstance(key, tuple) else (plain(key),)
        if group not in self._estimates.keys:
            self._estimates[key]  # refuses it, with the keys that there are
            raise RequestError(f"loc: {key!r} is not a group; use brackets, as in answer[{key!r}]")
        row: int = self._estimates.keys.index(group)
        return row

    def _groups(self, rows: Any) -> E:
        own = self._estimates
        if not rows:
            raise RequestError("loc: must keep at least one group")
        taken: E = own._taken(rows, range(len(own.outputs[1]) if own.outputs else 1), f"{len(rows)} of {len(own.keys)}")
        return taken


class Changes(OfEstimates[E]):
    """The methods that select, name or compare groups."""

    @property
    def loc(self) -> ByKey[E]:
        """Groups by their keys, as ``answer.loc[1988]``, ``answer.loc[[1984, 1988]]`` or ``answer.loc[1984:1986]``.

        Examples
        --------
        >>> answer = df.groupby("plan").size().release(mu=0.1)
        >>> answer.loc["free"] - answer.loc["paid"] == answer["free"] - answer["paid"]
        True
        """
        return ByKey(self)

    at = loc

    @property
    def index(self) -> pd.Index:
        """The labels of the numbers, as a ``pandas.Index``.

        Examples
        --------
        >>> df.groupby("plan").size().release(mu=0.1).index.tolist()
        ['free', 'paid']
        """
        return pandas_index(self.names, self.keys, self.outputs)

    def reset_index(self) -> pd.DataFrame:
        """The table of `to_pandas` with the labels as columns.

        Examples
        --------
        >>> df.groupby("plan").size().release(mu=0.1).reset_index().columns[:3].tolist()
        ['plan', 'estimate', 'low']
        """
        table = self.to_pandas()
        return table.reset_index(names=[f"{name} (group)" if name in table else name for name in table.index.names])

    def idxmax(self) -> Key | tuple[Key, ...]:
        """The label of the largest estimate, NaN if none is known; the noise may decide where intervals overlap.

        Raises
        ------
        RequestError
            There is one number only.

        Examples
        --------
        >>> df.groupby("plan").size().release(mu=0.1).idxmax() in ("free", "paid")
        True
        """
        return self._extreme_label("idxmax", ascending=False)

    def idxmin(self) -> Key | tuple[Key, ...]:
        """The label of the smallest estimate, as `idxmax`.

        Examples
        --------
        >>> df.groupby("plan").size().release(mu=0.1).idxmin() in ("free", "paid")
        True
        """
        return self._extreme_label("idxmin", ascending=True)

    def diff(self, periods: int = 1) -> E:
        """The difference between each group and the one `periods` before it, with intervals.

        The first groups, which have none before them, are left out.

        Parameters
        ----------
        periods : int, default 1

        Raises
        ------
        RequestError
            The answer does not have groups of one level, has no more than `periods`, or its groups share their noise.

        Examples
        --------
        >>> answer = df.groupby("plan").size().release(mu=0.1)
        >>> answer.diff().index.tolist()
        ['paid']
        """
        later, earlier = self._shifted("diff", periods)
        return replace(later - earlier, description=f"change of {self.description}")  # type: ignore[no-any-return]

    def pct_change(self, periods: int = 1) -> E:
        """The change from the group `periods` before, as a share of that group's number, with intervals.

        Parameters
        ----------
        periods : int, default 1

        Raises
        ------
        RequestError
            As for `diff`.

        Examples
        --------
        >>> answer = df.groupby("plan").size().release(mu=0.1)
        >>> change = answer.pct_change()
        >>> change.description
        'relative change of count of rows by plan'
        """
        later, earlier = self._shifted("pct_change", periods)
        return replace(later / earlier - 1, description=f"relative change of {self.description}")  # type: ignore[no-any-return]

    def _shifted(self, verb: str, periods: object) -> tuple[Any, Any]:
        """The groups that have one before them, and those before them, with the same labels."""
        shift = whole_number(periods)
        if len(self.names) != 1 or shift is None or not 1 <= shift < len(self.keys):
            raise RequestError(
                f"{verb}: needs groups of one level, such as years, and periods from 1 to one less than their number; "
                f"got periods={periods!r} for {self.description}; select the groups of other levels first, or subtract "
                "two groups, as in answer[1988] - answer[1984]"
            )
        whole = slice(None)
        later = self._part(self.description, slice(shift, None), whole, keys=self.keys[shift:])
        return later, self._part(self.description, slice(None, -shift), whole, keys=later.keys)

    def _extreme_label(self, verb: str, *, ascending: bool) -> Key | tuple[Key, ...]:
        labels, values = self.index, self.arrays.displayed.ravel().tolist()
        order = order_of(values, ascending)
        if len(values) < 2:
            raise RequestError(f"{verb}: needs several numbers; got {self.description}")
        first = order[0]
        return math.nan if math.isnan(values[first]) else plain(labels[first])
