"""pandas' methods of a table of estimates: sorting, rounding, selecting rows, iterating.

Post-processing: they read the released values only, cost nothing and do not use the session.  Every result is again
estimates with their intervals.  A method that is not offered is refused by name, with `to_pandas`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from dpnb.errors import RequestError
from dpnb.results.tables.changes import Changes
from dpnb.results.tables.index import COLUMNS, MAX_DECIMALS, decimals_of, flag_of, level_of, order_of, row_count
from dpnb.schema import Key, plain

E = TypeVar("E")


class PandasMethods(Changes[E]):
    """Methods of a pandas Series (one number for each group or statistic) and DataFrame (several)."""

    def _ranks(self, level: int) -> dict[Key, int]:
        """The order of the keys of one level: numbers by size, strings alphabetically."""
        distinct = {key[level] for key in self.keys}
        return {key: rank for rank, key in enumerate(sorted(distinct, key=lambda key: (isinstance(key, str), key)))}

    # --- shape -------------------------------------------------------------------------------------------------

    @property
    def _is_table(self) -> bool:
        """Whether it has rows and columns, as a DataFrame; otherwise it is a number, or a list as a Series."""
        return self.is_two_way or bool(self.names and self.outputs)

    @property
    def _columns(self) -> list[Key]:
        if self.is_two_way:
            return list(dict.fromkeys(key[-1] for key in self.keys))
        return list(self.outputs[1]) if self.outputs else []

    def _rows(self, verb: str) -> tuple[list[Any], list[list[int]]]:
        """Labels of the rows, and for each the indices of its groups (or, without groups, of its output)."""
        if self.is_scalar:
            raise RequestError(
                f"{verb}: needs several numbers; got {self.description}, a single number; use .estimate or .interval"
            )
        if not self.names:
            return self._columns, [[index] for index in range(len(self._columns))]
        depth = len(self.names) - self.is_two_way
        members: dict[tuple[Key, ...], list[int]] = {}
        for index, key in enumerate(self.keys):
            members.setdefault(key[:depth], []).append(index)
        if not self.is_two_way:  # also when two groups had the same key
            members = {key: [index] for index, key in enumerate(self.keys)}
        return [key if depth > 1 else key[0] for key in members], list(members.values())

    def _arranged(self, order: Sequence[int], members: list[list[int]], words: str) -> E:
        chosen = [index for row in order for index in members[row]]
        if not self.names:
            return self._taken([0], chosen, words)
        return self._taken(chosen, range(self.arrays.value.shape[1]), words)

    @property
    def shape(self) -> tuple[int, ...]:
        """``()`` for a single number, otherwise that of `estimate`."""
        if self.is_scalar:
            return ()
        rows = len(self._rows("shape")[0])
        return (rows, len(self._columns)) if self._is_table else (rows,)

    def item(self) -> float:
        """The estimate as a float, as for a numpy scalar.

        Raises
        ------
        RequestError
            There are several numbers.

        Examples
        --------
        >>> answer = df["age"].mean().release(mu=0.1)
        >>> 0 <= answer.item() <= 100
        True
        """
        return float(self)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self._rows("len")[0])

    def __contains__(self, key: object) -> bool:
        """Whether ``self[key]`` exists: the key of a group, or the name of a statistic."""
        try:
            self[key]
        except RequestError:
            return False
        return True

    def __iter__(self) -> Iterator[Any]:
        """Each number with its interval, as for a Series; the names of the columns, as for a DataFrame."""
        self._refuse_callers()
        return iter(self._columns) if self._is_table else (self[label] for label in self._rows("iteration")[0])

    def items(self) -> Iterator[tuple[Any, E]]:
        """Pairs of a label and its estimates: of each group or statistic, or of each column of a table.

        Examples
        --------
        >>> counts = df.groupby("plan").size().release(mu=0.1)
        >>> [(plan, count.interval[0] < count.estimate) for plan, count in counts.items()]
        [('free', True), ('paid', True)]
        """
        labels, _ = self._rows("items")
        return ((label, self[label]) for label in (self._columns if self._is_table else labels))

    # --- order -------------------------------------------------------------------------------------------------

    def sort_values(self, by: object = None, *, ascending: bool = True) -> E:
        """The rows sorted by their estimates; unknown ones last.

        The order is that of the released estimates: where intervals overlap, the private values may have another.

        Parameters
        ----------
        by : optional
            The statistic of a table with several, for example ``by="mean"``; otherwise ``"estimate"`` (the default),
            ``"low"``, ``"high"`` or ``"noise_scale"``.
        ascending : bool, default True

        Returns
        -------
        Estimates

        Raises
        ------
        RequestError
            `by` is not a column.

        Examples
        --------
        >>> answer = df.groupby("plan").size().release(mu=0.1)
        >>> answer.sort_values().shape
        (2,)
        """
        _, members = self._rows("sort_values")
        values, words = self._sorting_values(by, members, "sort_values")
        order = order_of(values, flag_of(ascending, "ascending"))
        return self._arranged(order, members, f"sorted by {words}{'' if ascending else ', largest first'}")

    def sort_index(self, *, level: object = None, ascending: bool = True) -> E:
        """The rows sorted by their keys: numbers by size, strings alphabetically, ranges and dates in their order.

        Parameters
        ----------
        level : str or int, optional
            One level of several.
        ascending : bool, default True

        Returns
        -------
        Estimates

        Examples
        --------
        >>> answer = df.groupby("plan").size().release(mu=0.1)
        >>> answer.sort_index(ascending=False).estimate.index.tolist()
        ['paid', 'free']
        """
        labels, members = self._rows("sort_index")
        if self.names:
            levels = (
                range(len(self.names) - self.is_two_way)
                if level is None
                else [level_of(self.names, level, "sort_index")]
            )
            ranks = [(at, self._ranks(at)) for at in levels]
            keys = [tuple(ranked[self.keys[own[0]][at]] for at, ranked in ranks) for own in members]
        else:
            keys = [(isinstance(label, str), label) for label in labels]
        order = sorted(range(len(labels)), key=keys.__getitem__)
        if not flag_of(ascending, "ascending"):
            order = order[::-1]
        return self._arranged(order, members, f"sorted by key{'' if ascending else ', last first'}")

    def head(self, n: int = 5) -> E:
        """The first `n` rows; a negative `n` omits the last ones.

        Parameters
        ----------
        n : int, default 5
            Number of rows.

        Examples
        --------
        >>> answer = df.groupby("plan").size().release(mu=0.1)
        >>> answer.head(1).estimate.index.tolist()
        ['free']
        """
        return self._slice(n, "head", lambda rows, number: rows[:number], "first")

    def tail(self, n: int = 5) -> E:
        """The last `n` rows; a negative `n` omits the first ones.

        Parameters
        ----------
        n : int, default 5
            Number of rows.

        Examples
        --------
        >>> answer = df.groupby("plan").size().release(mu=0.1)
        >>> answer.tail(1).estimate.index.tolist()
        ['paid']
        """
        return self._slice(n, "tail", lambda rows, number: rows[-number:] if number else rows[:0], "last")

    def nlargest(self, n: int = 5, columns: object = None) -> E:
        """The `n` rows with the largest estimates; `columns` as `by` of `sort_values`.

        Parameters
        ----------
        n : int, default 5
            Number of rows.
        columns : str, optional
            The statistic, as for `by` of `sort_values`.

        Examples
        --------
        >>> answer = df.groupby("plan").size().release(mu=0.1)
        >>> answer.nlargest(1).shape
        (1,)
        """
        return self._extreme(n, columns, "nlargest", ascending=False)

    def nsmallest(self, n: int = 5, columns: object = None) -> E:
        """The `n` rows with the smallest estimates; `columns` as `by` of `sort_values`.

        Parameters
        ----------
        n : int, default 5
            Number of rows.
        columns : str, optional
            The statistic, as for `by` of `sort_values`.

        Examples
        --------
        >>> answer = df.groupby("plan").size().release(mu=0.1)
        >>> answer.nsmallest(1).shape
        (1,)
        """
        return self._extreme(n, columns, "nsmallest", ascending=True)

    def round(self, decimals: int | Mapping[Any, int] = 0) -> E:
        """The estimates to the nearest number with this number of decimals, and the intervals outward.

        Parameters
        ----------
        decimals : int or mapping, default 0
            For every number, or for single statistics, as in ``round({"mean": 1})``.

        Returns
        -------
        Estimates
            No interval is narrower than before.

        Examples
        --------
        >>> answer = df["age"].mean().release(mu=0.1)
        >>> float(answer.round(1)) == round(float(answer), 1)
        True
        """
        labels = self.outputs[1] if self.outputs else (None,)
        if isinstance(decimals, Mapping):
            unknown = [label for label in decimals if label not in labels]
            if unknown:
                raise RequestError(f"round: {unknown[0]!r} is not a statistic; {self._known_columns()}")
            digits = [decimals_of(decimals.get(label, MAX_DECIMALS)) for label in labels]
            return self._rounded(digits, "rounded")
        count = decimals_of(decimals)
        return self._rounded([count] * len(labels), f"rounded to {count} decimal{'' if count == 1 else 's'}")

    def __round__(self, decimals: int = 0) -> E:
        return self.round(decimals)

    def unstack(self, level: object = -1) -> E:
        """A two-way table of groups by several levels: one of the levels as its columns.

        Parameters
        ----------
        level : str or int, default -1
            The level whose keys become the columns.

        Returns
        -------
        Estimates
            The same numbers; `estimate` is a DataFrame of this shape.

        Raises
        ------
        RequestError
            The groups do not have several levels, or each has several statistics.

        Examples
        --------
        >>> counts = df.groupby(["plan", df["age"] > 65]).size().release(mu=0.1)
        >>> counts.unstack().estimate.shape
        (2, 2)
        """
        if len(self.names) < 2 or self.outputs is not None:
            raise RequestError(
                f"unstack: needs groups of several levels, with one number each; got {self.description}; use .estimate "
                "for a DataFrame with one column for each statistic"
            )
        last = level_of(self.names, level, "unstack")
        levels = [*(at for at in range(len(self.names)) if at != last), last]
        outer = list(dict.fromkeys(tuple(key[at] for at in levels[:-1]) for key in self.keys))
        inner = list(dict.fromkeys(key[last] for key in self.keys))
        positions = {tuple(key[at] for at in levels): index for index, key in enumerate(self.keys)}
        rows = [positions[*key, part] for key in outer for part in inner if (*key, part) in positions]
        keys = tuple(tuple(self.keys[row][at] for at in levels) for row in rows)
        names = tuple(self.names[at] for at in levels)
        return self._taken(rows, [0], "", names=names, keys=keys, is_two_way=True)

    # --- arguments ---------------------------------------------------------------------------------------------

    def _sorting_values(self, by: object, members: list[list[int]], verb: str) -> tuple[list[float], str]:
        """The number of each row to sort by, and its name."""
        if isinstance(by, list | tuple) and len(by) == 1:
            by = by[0]
        by = plain(by)
        values = self.arrays.displayed
        if not self._is_table:
            column = "estimate" if by is None else by
            if not isinstance(column, str) or column not in COLUMNS:
                raise RequestError(f"{verb}: {column!r} is not a column; it has {', '.join(COLUMNS)}")
            wanted = self.population_arrays if column.startswith("population") else self.arrays
            if wanted is None:
                raise RequestError(f"{verb}: there are no population intervals; sort by another column")
            return getattr(wanted, COLUMNS[column]).ravel().tolist(), column
        if not isinstance(by, bool | int | float | str) or by not in self._columns:
            raise RequestError(f"{verb}: needs the name of a column; got {by!r}; {self._known_columns()}")
        if self.outputs is not None:
            return values[:, self._columns.index(by)].tolist(), str(by)
        cells = ([float(values[index, 0]) for index in own if self.keys[index][-1] == by] for own in members)
        return [own[0] if own else math.nan for own in cells], str(by)

    def _known_columns(self) -> str:
        return f"it has {', '.join(map(repr, self._columns))}" if self._columns else "it has none"

    def _slice(self, n: object, verb: str, cut: Callable[[range, int], range], words: str) -> E:
        labels, members = self._rows(verb)
        count = row_count(n, verb)
        kept = cut(range(len(labels)), count)
        if not kept:
            raise RequestError(f"{verb}: must keep at least one row; got n={count} of {len(labels)} rows")
        return self._arranged(kept, members, f"the {words} {len(kept)} of {len(labels)}")

    def _extreme(self, n: object, columns: object, verb: str, *, ascending: bool) -> E:
        _, members = self._rows(verb)
        count = row_count(n, verb)
        values, words = self._sorting_values(columns, members, verb)
        if count < 1:
            raise RequestError(f"{verb}: n must be at least 1; got {count}")
        order = order_of(values, ascending)[:count]
        size = "smallest" if ascending else "largest"
        return self._arranged(order, members, f"the {len(order)} {size} of {len(members)} by {words}")
