"""A query whose answer is rearranged: ``df.groupby("g").size().sort_values()``, which is released as the query is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from dpnb._plan.measurements import Discovery
from dpnb._plan.plan import group_keys
from dpnb.copying import safe_repr
from dpnb.query.largest_groups import PreviewedOnDisplay
from dpnb.results.answer import Answer
from dpnb.results.estimates.noisy import IntervalArrays
from dpnb.results.estimates.outputs import outputs_of, table_of
from dpnb.results.preview import Preview, Previews, PreviewTargets
from dpnb.results.tables.table import Estimates

METHODS = ("diff", "nlargest", "nsmallest", "pct_change", "round", "sort_index", "sort_values")
"""Methods of an answer that a query has too."""


def _deferred(name: str) -> Callable[..., ArrangedQuery]:
    def method(self: Any, *args: Any, **options: Any) -> ArrangedQuery:
        return self._arranged(name, args, options)  # type: ignore[no-any-return]

    method.__name__ = name
    method.__doc__ = f"""As `dpnb.Answer.{name}`, of the answer when the query is released.

        The release, its cost and its record are those of the query without it.

        Examples
        --------
        >>> query = df.groupby("plan").size().{name}(*[])
        >>> query.description
        'count of rows by plan, then .{name}()'
        """
    return method


class Arrangements:
    """The methods of a query that rearrange its answer."""

    __slots__ = ()

    if TYPE_CHECKING:

        def _arranged(self, name: str, args: tuple[Any, ...], options: Mapping[str, Any]) -> ArrangedQuery:
            """The query, with one more method that is called on its answer."""


for _name in METHODS:
    setattr(Arrangements, _name, _deferred(_name))


class ArrangedQuery(Arrangements, PreviewedOnDisplay):
    """A query, and the methods that are called on its answer.

    Parameters
    ----------
    query : Query
        What is released.
    steps : tuple of (str, tuple, dict)
        The methods with their arguments, which are tried on an answer without numbers before anything is charged.

    Examples
    --------
    >>> query = df.groupby("plan").size().sort_values(ascending=False)
    >>> query.description
    'count of rows by plan, then .sort_values(ascending=False)'
    >>> type(query.release(mu=0.1)).__name__
    'Estimates'
    """

    __slots__ = ("query", "steps")

    _released_type = Answer

    def __init__(self, query: Any, steps: tuple[tuple[str, tuple[Any, ...], dict[str, Any]], ...]) -> None:
        self.query = query
        self.steps = steps
        if not isinstance(query.plan.aggregation, Discovery):
            self._applied(_without_numbers(query))

    @property
    def description(self) -> str:
        """The query in words, and the methods."""
        calls = (
            f".{name}({', '.join([*map(repr, args), *(f'{key}={value!r}' for key, value in options.items())])})"
            for name, args, options in self.steps
        )
        return f"{self.query.description}, then {''.join(calls)}"

    def preview(self, **targets: Unpack[PreviewTargets]) -> Preview | Previews:
        """As `dpnb.Query.preview` of the query.

        Examples
        --------
        >>> df.groupby("plan").size().sort_values().preview(mu=0.1).fits
        True
        """
        return self.query.preview(**targets)  # type: ignore[no-any-return]

    def release(self, **target: Any) -> Any:
        """As `dpnb.Query.release` of the query; the methods are called on the answer.

        Examples
        --------
        >>> df.groupby("plan").size().sort_values().release(mu=0.1).shape
        (2,)
        """
        return self._applied(self.query.release(**target))

    @property
    def answer(self) -> Any:
        """The methods called on the recorded answer of the query; see `dpnb.Query.answer`.  Free."""
        return self._applied(self.query.answer)

    def _arranged(self, name: str, args: tuple[Any, ...], options: Mapping[str, Any]) -> ArrangedQuery:
        return ArrangedQuery(self.query, (*self.steps, (name, args, dict(options))))

    def _applied(self, answer: Estimates) -> Any:
        for name, args, options in self.steps:
            answer = getattr(answer, name)(*args, **options)
        return answer

    @safe_repr
    def __repr__(self) -> str:
        return f"<query: {self.description}; .preview() is free, .release(mu=...) is charged>"


def _without_numbers(query: Any) -> Estimates:
    """Estimates with the labels of a query's answer, all of them unknown."""
    schema, table = query.runner.tables.schema(query.plan.source), table_of(query.view)
    names = tuple(group.name for group in query.plan.group_by) if table is None else (table.name,)
    keys = group_keys(query.plan, schema) if table is None else tuple((row,) for row in table.rows)
    outputs = outputs_of(query.view) if table is None else table.outputs
    unknown = np.full((len(keys), len(outputs[1]) if outputs else 1), np.nan)
    arrays = IntervalArrays(unknown, unknown, unknown, unknown)
    ids = tuple(frozenset({(0, at)}) for at in range(len(keys)))
    return Estimates(
        description=query.description,
        names=names,
        keys=keys,
        outputs=outputs,
        arrays=arrays,
        confidence=0.95,
        measurement_ids=ids,
    )
