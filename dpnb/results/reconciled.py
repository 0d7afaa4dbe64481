"""Estimates across answers that add up, with the intervals of the answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from dpnb.errors import RequestError
from dpnb.results.answer import Answer
from dpnb.results.batch import group_texts
from dpnb.results.display import Displayed
from dpnb.results.tables.table import Estimates

if TYPE_CHECKING:
    import pandas as pd

OLD_INTERVALS = (
    "the intervals are those of the answers: they do not shrink, since the queries and their budgets were chosen after "
    "earlier answers were seen"
)
"""What the intervals of reconciled estimates are."""

KEPT = ("estimate", "low", "high")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ReconciledEstimates(Estimates):
    """The reconciled estimates of one answer, with the intervals of that answer.

    Parameters
    ----------
    answer : Answer
        The answer.

    Examples
    --------
    >>> answers = [query.release(mu=0.1) for query in (df.count(), df.groupby(df["age"].fillna(0) > 65).size())]
    >>> total, by_age = session.reconcile(answers)
    >>> bool(abs(by_age.estimate.sum() - float(total)) < 1e-6)
    True
    >>> total.interval == answers[0].interval
    True
    """

    answer: Answer

    def _combine(self, *_: Any) -> NoReturn:
        raise RequestError(
            f"{self.description}: its intervals are those of an answer with another estimate, so those of a sum or a "
            "quotient are not known; compute with the answers, or use .estimate"
        )


@dataclass(frozen=True, repr=False)
class Reconciliation(Displayed):
    """The estimates of several answers, reconciled by weighted least squares, so that tables add up.

    The intervals are those of the answers.  They do not shrink: weighted least squares gives shorter intervals only for
    queries and budgets that were fixed before any answer was seen, as in a batch (:meth:`dpnb.Session.plan`).

    Parameters
    ----------
    estimates : tuple of ReconciledEstimates
        In the order of the answers.
    notice : str or None
        Warning that the session is a rehearsal or not private.

    Examples
    --------
    >>> answers = [query.release(mu=0.1) for query in (df.count(), df.groupby(df["age"].fillna(0) > 65).size())]
    >>> session.reconcile(answers).to_pandas().columns.tolist()
    ['query', 'group', 'estimate', 'low', 'high', 'answer']
    """

    estimates: tuple[ReconciledEstimates, ...]
    notice: str | None = None

    def __len__(self) -> int:
        return len(self.estimates)

    def __getitem__(self, index: int) -> ReconciledEstimates:
        return self.estimates[index]

    def __iter__(self) -> Iterator[ReconciledEstimates]:
        return iter(self.estimates)

    def to_pandas(self) -> pd.DataFrame:
        """One row for each number: the reconciled estimate, the interval of the answer, and the answer's estimate.

        Examples
        --------
        >>> answers = [query.release(mu=0.1) for query in (df.count(), df.groupby(df["age"].fillna(0) > 65).size())]
        >>> len(session.reconcile(answers).to_pandas())
        3
        """
        import pandas as pd  # imported when first used

        tables = []
        for one in self.estimates:
            table = one.to_pandas()
            columns: dict[str, Any] = {"query": one.answer.description, "group": group_texts(one, table)}
            columns |= {name: table[name] for name in KEPT}
            columns["answer"] = one.answer.to_pandas()["estimate"]
            tables.append(pd.DataFrame(columns, index=table.index))
        return pd.concat(tables, ignore_index=True)
