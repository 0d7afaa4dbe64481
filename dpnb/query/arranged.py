"""A query whose answer is rearranged: ``df.groupby("g").size().sort_values()``, which is released as the query is."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

import numpy as np

from dpnb._plan.measurements import Discovery
from dpnb._plan.plan import group_keys
from dpnb.query.largest_groups import PreviewedOnDisplay
from dpnb.results.answer import Answer
from dpnb.results.estimates.linear import named_outputs
from dpnb.results.estimates.noisy import IntervalArrays
from dpnb.results.estimates.outputs import dates_of, table_of
from dpnb.results.preview import Preview, Previews, PreviewTarget, PreviewTargets
from dpnb.results.tables.table import Estimates

Method = TypeVar("Method", bound=Callable[..., Any])


def _of_answer(call: str) -> Callable[[Method], Method]:
    """Add to the docstring of a method the parameters of that of an answer, and a call as an example."""

    def decorate(method: Method) -> Method:
        described = inspect.getdoc(getattr(Estimates, method.__name__)) or ""
        sections = [method.__doc__ or "", *re.findall(r"Parameters\n-+(?:\n.+)+", described)]
        query = 'df.groupby("plan").size()'
        sections.append(f"Examples\n--------\n>>> {query}.{call}.description\n'count of rows by plan, then .{call}'\n")
        method.__doc__ = "\n\n".join(sections)
        return method

    return decorate


class Arrangements:
    """The methods of a query that rearrange its answer."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def answer(self) -> Any:
            """The recorded answer."""

        def _has_answer(self) -> bool:
            """Whether it was released."""

        def _arranged(self, name: str, **options: tuple[object, object]) -> ArrangedQuery:
            """The query, with one more method that is called on its answer; the options with their defaults."""

    @_of_answer("sort_values(ascending=False)")
    def sort_values(self, by: object = None, *, ascending: bool = True) -> ArrangedQuery:
        """As `dpnb.Answer.sort_values`, of the answer when the query is released; the charge is that of the query."""
        return self._arranged("sort_values", by=(by, None), ascending=(ascending, True))

    @_of_answer("sort_index(ascending=False)")
    def sort_index(self, *, level: object = None, ascending: bool = True) -> ArrangedQuery:
        """As `dpnb.Answer.sort_index`, of the answer when the query is released; the charge is that of the query."""
        return self._arranged("sort_index", level=(level, None), ascending=(ascending, True))

    @_of_answer("nlargest(n=1)")
    def nlargest(self, n: int = 5, columns: object = None) -> ArrangedQuery:
        """As `dpnb.Answer.nlargest`, of the answer when the query is released; the charge is that of the query."""
        return self._arranged("nlargest", n=(n, 5), columns=(columns, None))

    @_of_answer("nsmallest(n=1)")
    def nsmallest(self, n: int = 5, columns: object = None) -> ArrangedQuery:
        """As `dpnb.Answer.nsmallest`, of the answer when the query is released; the charge is that of the query."""
        return self._arranged("nsmallest", n=(n, 5), columns=(columns, None))

    @_of_answer("round(decimals=1)")
    def round(self, decimals: int | Mapping[Any, int] = 0) -> ArrangedQuery:
        """As `dpnb.Answer.round`, of the answer when the query is released; the charge is that of the query."""
        return self._arranged("round", decimals=(decimals, 0))

    @_of_answer("diff()")
    def diff(self, periods: int = 1) -> ArrangedQuery:
        """As `dpnb.Answer.diff`, of the answer when the query is released; the charge is that of the query."""
        return self._arranged("diff", periods=(periods, 1))

    @_of_answer("pct_change()")
    def pct_change(self, periods: int = 1) -> ArrangedQuery:
        """As `dpnb.Answer.pct_change`, of the answer when the query is released; the charge is that of the query."""
        return self._arranged("pct_change", periods=(periods, 1))

    @_of_answer("idxmin()")
    def idxmin(self) -> ArrangedQuery:
        """As `dpnb.Answer.idxmin`, of the answer when the query is released; the charge is that of the query."""
        return self._arranged("idxmin")

    @property
    def plot(self) -> Any:
        """As `dpnb.Answer.plot`: of the answer if the query was released, otherwise when it is, for its charge.

        Examples
        --------
        >>> df.groupby("plan").size().plot.bar().description
        "count of rows by plan, then .plot(kind='bar')"
        """
        return self.answer.plot if self._has_answer() else QueryPlot(self._arranged)


class QueryPlot:
    """Draws the answer of a query when it is released: ``query.plot()``, or ``query.plot.bar()`` as in pandas.

    Parameters
    ----------
    arranged : callable
        Calls one more method on the answer.

    Examples
    --------
    >>> df.groupby("plan").size().plot().description
    'count of rows by plan, then .plot()'
    """

    __slots__ = ("_arranged",)

    def __init__(self, arranged: Callable[..., ArrangedQuery]) -> None:
        self._arranged = arranged

    def __call__(self, **drawing: object) -> ArrangedQuery:
        """The query, whose answer is drawn; arguments are those of `dpnb.Answer.plot`."""
        return self._arranged("plot", **{name: (value, None) for name, value in drawing.items()})

    def bar(self, **drawing: object) -> ArrangedQuery:
        """As ``plot()``.

        Parameters
        ----------
        **drawing
            As for `dpnb.Answer.plot`.

        Examples
        --------
        >>> df.groupby("plan").size().plot.bar(title="Plans").description
        "count of rows by plan, then .plot(title='Plans', kind='bar')"
        """
        return self(**drawing, kind="bar")

    def line(self, **drawing: object) -> ArrangedQuery:
        """As ``plot()``.

        Parameters
        ----------
        **drawing
            As for `dpnb.Answer.plot`.

        Examples
        --------
        >>> df.groupby("plan").size().plot.line().description
        "count of rows by plan, then .plot(kind='line')"
        """
        return self(**drawing, kind="line")

    if not TYPE_CHECKING:  # a type checker refuses what is not offered, as the answer does here

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            return partial(self, kind=name)


class ArrangedQuery(Arrangements, PreviewedOnDisplay):
    """A query, and the methods that are called on its answer.

    Parameters
    ----------
    query : Query
        What is released.
    steps : tuple of (str, dict)
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

    def __init__(self, query: Any, steps: tuple[tuple[str, dict[str, Any]], ...]) -> None:
        self.query = query
        self.steps = steps
        if not isinstance(query.plan.aggregation, Discovery):
            self._applied(_without_numbers(query))

    @property
    def description(self) -> str:
        """The query in words, and the methods."""
        calls = (
            f".{name}({', '.join(f'{key}={value!r}' for key, value in options.items())})"
            for name, options in self.steps
        )
        return f"{self.query.description}, then {''.join(calls)}"

    def preview(self, **targets: Unpack[PreviewTargets]) -> Preview | Previews:
        """As `dpnb.Query.preview` of the query.

        Parameters
        ----------
        **targets
            As for `dpnb.Query.preview`.

        Examples
        --------
        >>> df.groupby("plan").size().sort_values().preview(mu=0.1).fits
        True
        """
        return self.query.preview(**targets)  # type: ignore[no-any-return]

    def release(self, **target: Unpack[PreviewTarget]) -> Any:
        """As `dpnb.Query.release` of the query; the methods are called on the answer.

        Parameters
        ----------
        **target
            As for `dpnb.Query.release`.

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

    def _has_answer(self) -> bool:
        return bool(self.query._has_answer())

    def _arranged(self, name: str, **options: tuple[object, object]) -> ArrangedQuery:
        return ArrangedQuery(self.query, (*self.steps, step(name, options)))

    def _applied(self, answer: Estimates) -> Any:
        for name, options in self.steps:
            answer = getattr(answer, name)(**options)
        return answer


def step(name: str, options: Mapping[str, tuple[object, object]]) -> tuple[str, dict[str, Any]]:
    """A method with those of its arguments that differ from their defaults."""
    return name, {key: value for key, (value, default) in options.items() if value is not default and value != default}


def _without_numbers(query: Any) -> Estimates:
    """Estimates with the labels of a query's answer, all of them 0."""
    schema, table = query.runner.tables.schema(query.plan.source), table_of(query.view)
    names = tuple(group.name for group in query.plan.group_by) if table is None else (table.name,)
    keys = group_keys(query.plan, schema) if table is None else tuple((row,) for row in table.rows)
    compiled = query.runner.tables.compile(query.plan)
    outputs = named_outputs(compiled, query.view, schema) if table is None else table.outputs
    zero = np.zeros((len(keys), len(outputs[1]) if outputs else 1))
    arrays = IntervalArrays(zero, zero, zero, zero)
    ids = tuple(frozenset({(0, at)}) for at in range(len(keys)))
    return Estimates(
        description=query.description,
        names=names,
        keys=keys,
        outputs=outputs,
        arrays=arrays,
        confidence=0.95,
        measurement_ids=ids,
        dates=dates_of(query.plan.aggregation, query.view, schema),
    )
