"""A released batch of queries or table with margins, and the preview of a batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpnb._plan.unreleased import Unreleased
from dpnb.accounting.losses import GDP
from dpnb.results.answer import Answer
from dpnb.results.display import Displayed
from dpnb.results.estimates.noisy import Cells, IntervalArrays
from dpnb.results.tables.intervals import ABOUT, OTHER_KINDS
from dpnb.results.tables.table import Estimates
from dpnb.schema import Key

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class PlannedQuery:
    """The expected error of one query of a batch.

    Parameters
    ----------
    description : str
        The query in words.
    loss : GDP
        The loss of a separate release of the query with the same error, rounded up.
    half_widths : float64 array or None
        Expected half-widths of the intervals, shape (groups, outputs); None where they depend on a quantity that has
        not been released.
    outputs : (str, tuple) or None
        Name and labels of the numbers of each group, if there are several.
    error_unit : str or None
        Unit of the errors, as in `Preview`.
    rank_note : str or None
        What errors of quantiles in rank leave out, as in `Preview`.
    least_half_widths, output_units, assumed_description
        As in `Preview`.

    Examples
    --------
    >>> batch = session.plan([df.groupby("plan").size(), df.count()])
    >>> [query.expected_error < 60 for query in batch.preview(mu=0.1).queries]
    [True, True]
    """

    description: str
    loss: GDP
    half_widths: Cells | None
    outputs: tuple[str, tuple[Key, ...]] | None
    error_unit: str | None
    rank_note: str | None
    least_half_widths: Cells | None = None
    output_units: tuple[str | None, ...] = ()
    assumed_description: str | None = None

    @property
    def expected_error(self) -> float | None:
        """Expected half-width of the interval of the worst group; None if it is unknown, or for mixed units."""
        if self.half_widths is None or (self.outputs and self.outputs[0] == "statistic"):
            return None
        return float(np.max(self.half_widths))


@dataclass(frozen=True, repr=False, kw_only=True)
class BatchPreview(Unreleased, Displayed):
    """Cost and expected errors of a batch, beside the cost of separate releases with the same errors.

    Parameters
    ----------
    description : str
        The batch in words.
    request : str
        The target as it was written.
    queries : tuple of PlannedQuery
        The expected error of each query.
    cost : GDP
        The charge of the batch.
    cost_fraction : float
        The cost as a fraction of the whole budget, rounded up.
    separate_cost : GDP
        The charge of releasing each query separately with the same errors.
    separate_fraction : float
        The same as a fraction of the whole budget, rounded up.
    n_tables : int
        Number of tables that would be measured.
    confidence : float
        Confidence of each interval.
    fits : bool
        Whether the filter would admit the batch now.
    headroom_after : float
        Fraction of the budget that would remain, rounded down; 0 if the batch does not fit.
    max_mu : float or None
        The largest mu that would fit, rounded down; None if the batch fits.
    notice : str or None
        Warning that the session is a rehearsal or not private.
    left_out : tuple of (str, str)
        Which rows some of the answers do not count, as in `dpnb.Preview`.

    Examples
    --------
    >>> batch = session.plan([df.groupby("plan").size(), df.count()])
    >>> preview = batch.preview(mu=0.1)
    >>> preview.cost.mu <= 0.1 < preview.separate_cost.mu
    True
    """

    description: str
    request: str
    queries: tuple[PlannedQuery, ...]
    cost: GDP
    cost_fraction: float
    separate_cost: GDP
    separate_fraction: float
    n_tables: int
    confidence: float
    fits: bool
    headroom_after: float
    max_mu: float | None
    notice: str | None
    left_out: tuple[tuple[str, str], ...] = ()

    _kind = "a preview"
    _released_type = Answer

    @property
    def saving(self) -> float:
        """How many times the squared loss of the batch separate releases with the same errors would need."""
        return float(self.separate_cost.mu_squared / self.cost.mu_squared)

    def to_pandas(self) -> pd.DataFrame:
        """One row for each query: its expected error (of the worst group), and the mu of a separate release.

        Examples
        --------
        >>> batch = session.plan([df.groupby("plan").size(), df.count()])
        >>> batch.preview(mu=0.1).to_pandas().columns.tolist()
        ['expected_error', 'separate_mu']
        """
        import pandas as pd  # imported when first used

        columns = {
            "expected_error": [query.expected_error for query in self.queries],
            "separate_mu": [query.loss.mu for query in self.queries],
        }
        index = pd.Index([query.description for query in self.queries], name="query")
        return pd.DataFrame(columns, index=index, dtype=float)


@dataclass(frozen=True, repr=False, kw_only=True)
class BatchAnswer(Displayed):
    """The answers of a batch, whose tables add up.

    Each answer is an ordinary `Answer`, with exact normal intervals for counts and sums.  The cost of an answer is the
    charge of its table in the batch; the tables together are charged `cost`.

    Parameters
    ----------
    description : str
        The batch in words.
    answers : tuple of Answer
        In the order of the queries.
    cost : GDP
        The charge of the batch when it was first released.
    cost_fraction : float
        The cost as a fraction of the whole budget, rounded up.
    n_tables : int
        Number of tables that were measured.
    time : str
        When the batch was first requested and charged; UTC.
    notice : str or None
        Warning that the session is a rehearsal or not private.

    Examples
    --------
    >>> by_plan, total = session.plan([df.groupby("plan").size(), df.count()]).release(mu=0.1)
    >>> bool(abs(by_plan.estimate.sum() - float(total)) < 1e-6)
    True
    """

    description: str
    answers: tuple[Answer, ...]
    cost: GDP
    cost_fraction: float
    n_tables: int
    time: str
    notice: str | None

    def __len__(self) -> int:
        return len(self.answers)

    def __getitem__(self, index: int) -> Answer:
        return self.answers[index]

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    def to_pandas(self) -> pd.DataFrame:
        """One row for each number of each answer: the query in words, its group, and the columns of an answer.

        Examples
        --------
        >>> batch = session.plan([df.groupby("plan").size(), df.count()]).release(mu=0.1)
        >>> batch.to_pandas().columns.tolist()
        ['query', 'group', 'estimate', 'low', 'high', 'noise_scale', 'population_low', 'population_high']
        """
        import pandas as pd  # imported when first used

        tables = []
        for answer in self.answers:
            table = answer.to_pandas()
            labels = {"query": answer.description, "group": group_texts(answer, table)}
            tables.append(pd.concat([pd.DataFrame(labels, index=table.index), table], axis=1))
        return pd.concat(tables, ignore_index=True)


def group_texts(answer: Estimates, table: pd.DataFrame) -> list[str]:
    """The group of each number in the table of an answer, in words."""
    if answer.is_scalar:
        return [""]
    return [", ".join(map(str, label)) if isinstance(label, tuple) else str(label) for label in table.index]


# --- a released table with its margins --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TableWithMargins(Estimates):
    """Estimates by group with their totals, which add up for counts and sums.

    It is displayed and exported like any other answer.  The table and each of its margins are ordinary answers in
    `batch`, which can be refined.

    Parameters
    ----------
    batch : BatchAnswer
        The answers: the table, then the totals of its rows, the totals of its columns, and the grand total; for a table
        without columns the table and the grand total.

    Examples
    --------
    >>> answer = dpnb.crosstab(df["plan"], df["age"] > 65, margins=True).release(share=0.1)
    >>> len(answer.batch)
    4
    """

    batch: BatchAnswer


def table_with_margins(batch: BatchAnswer, name: str) -> TableWithMargins:
    """The table of a batch of cells, rows, columns and total, in this order (without columns: of cells and total)."""
    cells = batch.answers[0]
    has_columns = len(batch.answers) > 2
    offsets = np.cumsum([0, *(len(answer.keys) for answer in batch.answers)])
    keys: list[tuple[Key, ...]] = []
    order: list[int] = []

    def add(key: tuple[Key, ...], answer: int, row: int) -> None:
        keys.append(key)
        order.append(int(offsets[answer]) + row)

    if has_columns:
        _, rows, columns, _ = batch.answers
        for row, outer in enumerate(rows.keys):
            for column, inner in enumerate(columns.keys):
                add((*outer, *inner), 0, row * len(columns.keys) + column)
            add((*outer, name), 1, row)
        margin = _margin(name, len(cells.names) - 1)
        for column, inner in enumerate(columns.keys):
            add((*margin, *inner), 2, column)
        add((*margin, name), 3, 0)
    else:
        for row, key in enumerate(cells.keys):
            add(key, 0, row)
        add(_margin(name, len(cells.names)), 1, 0)
    outputs = range(cells.arrays.value.shape[1])
    kinds = {name: [getattr(answer, name) for answer in batch.answers] for name in OTHER_KINDS}
    others: dict[str, Any] = {
        name: None if None in parts else _stacked(parts).take(order, outputs) for name, parts in kinds.items()
    }
    ids = [one for answer in batch.answers for one in answer.measurement_ids]
    return TableWithMargins(
        description=f"{cells.description}, with margins",
        names=cells.names,
        keys=tuple(keys),
        outputs=cells.outputs,
        arrays=_stacked([answer.arrays for answer in batch.answers]).take(order, outputs),
        **others,
        confidence=cells.confidence,
        simultaneous=cells.simultaneous,
        **{about: getattr(cells, about) for about in ABOUT},
        measurement_ids=tuple(ids[index] for index in order),
        is_refined=False,
        is_two_way=has_columns and cells.outputs is None,
        dates=cells.dates,
        batch=batch,
    )


def _margin(name: str, levels: int) -> tuple[Key, ...]:
    """The key of a total, as in pandas."""
    return (name, *("" for _ in range(levels - 1)))


def _stacked(parts: list[IntervalArrays]) -> IntervalArrays:
    """The rows of several estimates with the same outputs."""
    fields = zip(*((one.value, one.low, one.high, one.noise_scale) for one in parts), strict=True)
    value, low, high, scale = (np.concatenate(field) for field in fields)
    first, second, third = (np.concatenate(field) for field in zip(*(one.unclipped for one in parts), strict=True))
    whole_range = np.concatenate([one.has_whole_range for one in parts])
    return IntervalArrays(value, low, high, scale, (first, second, third), whole_range)
