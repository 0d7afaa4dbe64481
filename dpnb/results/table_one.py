"""The released first table of a study: its groups side by side, with their differences to one of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpnb._plan.measurements import LevelShareView, MomentsView, NamedColumn, QuantilesView, TableOneView
from dpnb.errors import RequestError
from dpnb.results.answer import Answer
from dpnb.results.display import to_html, to_latex
from dpnb.results.estimates.noisy import Cells
from dpnb.results.tables.table import Estimates

if TYPE_CHECKING:
    import pandas as pd


class TableRow(NamedTuple):
    """A row of the table: of a variable the statistics that are shown together."""

    variable: str  # empty for the number of rows
    kind: str  # "n", "mean", "median" or "share"
    level: str  # of a share, the value of the variable
    at: tuple[int, ...]  # the columns of the view, of which the first is compared


def _table_rows(view: TableOneView) -> list[TableRow]:
    """The rows of a table, in order."""
    rows: list[TableRow] = []
    parts: list[int] = []
    for index, (column, variable) in enumerate(zip(view.columns, view.variables, strict=True)):
        kind = _kind_of(column)
        if kind in ("mean", "median") and rows and rows[-1].kind == kind and parts[-1] == column.part:
            rows[-1] = rows[-1]._replace(at=(*rows[-1].at, index))
            continue
        rows.append(TableRow(variable, kind, _statistic(column, variable) if kind == "share" else "", (index,)))
        parts.append(column.part)
    return rows


def _kind_of(column: NamedColumn) -> str:
    if isinstance(column.view, LevelShareView):
        return "share"
    return (
        "mean" if isinstance(column.view, MomentsView) else "median" if isinstance(column.view, QuantilesView) else "n"
    )


def _statistic(column: NamedColumn, variable: str) -> str:
    return column.name.removeprefix(f"{variable}: ")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TableOne(Answer):
    """The first table of a study: an answer with the numbers of each group, and their differences to one group.

    Its numbers with their intervals are those of an answer: ``table["age: mean"]``, ``table["paid"]`` and
    ``table.to_pandas()``.

    Examples
    --------
    >>> table = persons.table_one(by="plan", columns=["age"]).release(mu=0.3)
    >>> print(table.to_markdown().splitlines()[0].count("|"))
    6
    >>> table.difference("paid").outputs[1]
    ('n', 'age: mean', 'age: std')
    """

    @property
    def reference(self) -> Any:
        """The key of the group with which the others are compared; None without groups."""
        return self._layout.reference[0] if self._layout.reference else None

    @property
    def rows(self) -> list[TableRow]:
        """What each row of the displayed table shows."""
        return _table_rows(self._layout)

    @cached_property
    def shown(self) -> Cells:
        """The displayed numbers; a standard deviation is unknown (NaN) where the noise may have made all of it."""
        found = np.array(self.arrays.displayed)
        for row in self.rows:
            for at in row.at[1:] if row.kind == "mean" else ():
                found[~(self.arrays.low[:, at] > 0), at] = np.nan
        return found

    @property
    def _layout(self) -> TableOneView:
        if not isinstance(self.view, TableOneView):  # never: for the type checker
            raise TypeError(type(self.view).__name__)
        return self.view

    def difference(self, group: object) -> Estimates:
        """Each number of a group less that of the reference, with its intervals.

        Parameters
        ----------
        group : the key of a group

        Raises
        ------
        RequestError
            It is not one of the groups.

        Examples
        --------
        >>> table = persons.table_one(by="plan", columns=["age"]).release(mu=0.3)
        >>> table.difference("paid")["age: mean"].has_population_intervals
        True
        """
        return self._of((group,)) - self._of(self._layout.reference)

    @cached_property
    def differences(self) -> dict[Any, Estimates]:
        """The differences of all groups but the reference, by key."""
        return {key[0]: self.difference(key[0]) for key in self.keys if key != self._layout.reference}

    def _index(self, key: tuple[Any, ...]) -> int:
        if key not in self.keys:
            listed = ", ".join(repr(one[0]) for one in self.keys if one)
            raise RequestError(f"{key[0]!r}: is not a group of this table; it has {listed or 'none'}")
        return self.keys.index(key)

    def _of(self, key: tuple[Any, ...]) -> Estimates:
        """All numbers of a group, also where a statistic has the name of its key."""
        index = self._index(key)
        words = f"{self.names[0]} {key[0]}" if self.names else self.description
        return self._part(words, slice(index, index + 1), slice(None), names=(), keys=((),))

    def standardized(self, group: object) -> Cells:
        """The standardized mean difference of each column to the reference, NaN where there is none.

        Of a mean and of a share: the difference over the root of the mean of both groups' variances (Austin 2009).
        There is none where a standard deviation is not clear of its noise.

        Parameters
        ----------
        group : the key of a group

        Examples
        --------
        >>> table = persons.table_one(by="plan", columns=["age"]).release(mu=0.3)
        >>> table.standardized("paid").shape
        (3,)
        """
        own, other = (self.shown[self._index(key)] for key in (self._layout.reference, (group,)))
        found = np.full(len(own), np.nan)
        with np.errstate(all="ignore"):
            for row in self.rows:
                first = row.at[0]
                if row.kind == "share":
                    spread = own[first] * (1 - own[first]) + other[first] * (1 - other[first])
                elif row.kind == "mean" and len(row.at) > 1:
                    spread = own[row.at[1]] ** 2 + other[row.at[1]] ** 2
                else:
                    continue
                found[first] = (other[first] - own[first]) / np.sqrt(spread / 2) if spread > 0 else np.nan
        return found

    def to_frame(self) -> pd.DataFrame:
        """The numbers of the table; NaN where they are unknown.

        One row for each statistic, by variable and statistic, and a column ``(group, "estimate")`` for each group; for
        each other group than the reference the columns ``difference``, ``low`` and ``high`` (the ends of its noise
        interval), ``population_low`` and ``population_high`` if they are known, and ``smd``, the standardized mean
        difference.  Shares are fractions.

        Examples
        --------
        >>> table = persons.table_one(by="plan", columns=["age"]).release(mu=0.3)
        >>> table.to_frame()["paid - free"].columns.tolist()
        ['difference', 'low', 'high', 'population_low', 'population_high', 'smd']
        """
        import pandas as pd  # imported when first used

        view = self._layout
        labels = zip(view.columns, view.variables, strict=True)
        index = [(variable, _statistic(column, variable)) for column, variable in labels]
        columns: dict[tuple[str, str], Any] = {
            (str(key[0]) if key else "all", "estimate"): row for key, row in zip(self.keys, self.shown, strict=True)
        }
        for key, found in self.differences.items():
            name, arrays = f"{key} - {self.reference}", found.arrays
            known = ~np.isnan(self.shown[[self._index((key,)), self._index(self._layout.reference)]]).any(axis=0)
            columns |= {(name, "difference"): np.where(known, arrays.displayed[0], np.nan)}
            columns |= {(name, "low"): arrays.low[0], (name, "high"): arrays.high[0]}
            wider = found.population_arrays
            if wider is not None:
                columns |= {(name, "population_low"): wider.low[0], (name, "population_high"): wider.high[0]}
            columns |= {(name, "smd"): self.standardized(key)}
        names = [*self.names, "number"] if self.names else ["group", "number"]
        return pd.DataFrame(
            np.column_stack([*columns.values()]),
            index=pd.MultiIndex.from_tuples(index, names=["variable", "statistic"]),
            columns=pd.MultiIndex.from_tuples([*columns], names=names),
        )

    def to_latex(self) -> str:
        r"""The displayed table as a ``tabular`` of LaTeX, which needs no package.

        Examples
        --------
        >>> table = persons.table_one(by="plan", columns=["age"]).release(mu=0.3)
        >>> print(table.to_latex().splitlines()[0])
        \begin{tabular}{lrrrr}
        """
        return to_latex(self)

    def to_html(self) -> str:
        """The displayed table as HTML, as a notebook shows it.

        Examples
        --------
        >>> table = persons.table_one(by="plan", columns=["age"]).release(mu=0.3)
        >>> "age, mean (sd)" in table.to_html()
        True
        """
        return to_html(self)
