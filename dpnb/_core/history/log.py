"""The log of a session: every request in words, with its cost, its error and the cell that asked; and what was refused.

Releases are read from the ledger, so every kernel sees them all.  Refusals cost nothing and are remembered by this
process alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.history import launch_text
from dpnb._core.pricing.stored_request import plan_of, request_of
from dpnb._core.pricing.target import StoredRequest
from dpnb._plan.plan import Plan, describe_plan
from dpnb.accounting.convert import convert
from dpnb.accounting.exact import decimal_up, exact
from dpnb.accounting.losses import GDP, RDP, Loss
from dpnb.errors import ConversionError, DpnbError, PlanError, printable
from dpnb.ledger import Charge, ChargeSummary
from dpnb.render.explanations import explanation_for
from dpnb.render.numbers import format_cost_up, format_percent_up

if TYPE_CHECKING:
    import pandas as pd

REFUSALS_KEPT = 20
ROWS_PER_QUERY = 100
"""Rows in one query of the ledger: SQLite limits how many ids it may name, and a row may hold thousands of numbers."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One request.

    Parameters
    ----------
    id : int
        Of the ledger's row.
    question : str
        In words.
    loss : Loss
        What it was charged where it was asked.
    share : float
        What that cost this session, as a share of the whole budget, rounded up.
    error : str or None
        Half-width of its intervals in words; None for what has no answer.
    time, status : str
    cell : str or None
        Id of the notebook cell that asked: the last one in this kernel, or else the first one ever.
    """

    id: int
    question: str
    loss: Loss
    share: float
    error: str | None
    time: str
    status: str
    cell: str | None

    @property
    def mu(self) -> float:
        """What it was charged, rounded up.

        Of another kind of loss the mu that it implies; of zCDP and RDP, which imply none, the mu of the Gaussian noise
        that would cost as much: to compare rows, and no statement.
        """
        return _mu_of(self.loss)

    @property
    def cost(self) -> str:
        """What it was charged, in words."""
        return format_cost_up(self.loss) if self.loss else "free"

    @property
    def share_words(self) -> str:
        """The share of the budget, in words."""
        return format_percent_up(self.share)


@dataclass(frozen=True)
class Refusal:
    """A request that was refused; nothing was charged."""

    id: int
    question: str
    message: str
    explanation: str
    time: str
    cell: str | None


@dataclass(frozen=True)
class CellCost:
    """What one notebook cell was charged, over everything that it ever asked.

    Parameters
    ----------
    ids : tuple of int
        The ledger's rows that it asked for, ascending.
    loss : GDP or None
        Of all of them together, where each was asked: mu squared adds (Smith and Thakurta 2022, Theorem 1); None if
        one of them implies no mu.
    share : float
        What they cost this session, of the whole budget, rounded up.
    """

    ids: tuple[int, ...]
    loss: GDP | None
    share: float


class _CellRows:
    """The rows that one cell asked for, summed up as they come and go: a cell in a loop asks thousands of times."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[GDP | None, Fraction]] = {}
        self._loss, self._share = GDP(0), Fraction(0)
        self._without = 0

    def __bool__(self) -> bool:
        return bool(self._rows)

    def add(self, row: int, loss: Loss, share: float) -> None:
        self._rows[row] = gdp_of(loss), exact(share)
        self._sum(row, 1)

    def remove(self, row: int) -> None:
        self._sum(row, -1)
        del self._rows[row]

    def _sum(self, row: int, sign: int) -> None:
        loss, share = self._rows[row]
        if loss is None:
            self._without += sign
        else:
            self._loss = self._loss + loss if sign > 0 else self._loss - loss
        self._share += sign * share

    @property
    def cost(self) -> CellCost:
        return CellCost(tuple(sorted(self._rows)), None if self._without else self._loss, decimal_up(self._share))


@lru_cache(maxsize=1024)
def _mu_of(loss: Loss) -> float:
    implied = gdp_of(loss)
    if implied is not None:
        return implied.mu
    rho = loss.parts[0] / loss.orders[0] if isinstance(loss, RDP) else loss.parts[0]
    return GDP.from_mu_squared(2 * rho).mu


def gdp_of(loss: Loss) -> GDP | None:
    """The GDP that a loss implies; None where it implies none."""
    try:
        return convert(loss, GDP)
    except ConversionError:
        return None


class RequestLog:
    """Every request of one ledger, and the refusals of this process.

    Parameters
    ----------
    account : Account
    error : callable
        Of the answer that a released row gave, in words.
    """

    def __init__(self, account: Accountant, error: Callable[[Charge, Plan, StoredRequest], str]) -> None:
        self._account, self._error = account, error
        self._settled: dict[int, LogEntry] = {}
        self._cell: dict[int, str] = {}
        self._rows: dict[str, _CellRows] = {}
        self._costs: dict[str, CellCost] = {}  # of the cells that have not asked since
        self._ids: list[int] = []
        self._seen = 0
        self._refused = 0
        self.refusals: deque[Refusal] = deque(maxlen=REFUSALS_KEPT)

    def note_request(self, charge: Charge, cell: str | None) -> None:
        """Note which cell asked for a row just now, be it for the first time or again."""
        with self._account.ledger.lock.checked():
            self._sync()
            if cell is not None and cell != self._cell.get(charge.id):
                self._move(charge, cell)

    def note_refusal(self, question: str, error: DpnbError, cell: str | None) -> None:
        """Note that a request was refused."""
        self._refused += 1
        question = printable(question)
        message = str(error).removeprefix(f"{question}: ")
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.refusals.appendleft(Refusal(self._refused, question, message, explanation_for(error).id, now, cell))

    @property
    def count(self) -> int:
        """How many requests there are."""
        return len(self.ids)

    @property
    def ids(self) -> list[int]:
        """The rows of the ledger, oldest first.

        Of this session and of what was launched in it, but not of its sub-sessions, which have logs of their own.
        """
        with self._account.ledger.lock.checked():
            self._sync()
            return self._ids

    def latest(self, most: int) -> list[LogEntry]:
        """The last requests, newest first."""
        return self.named(reversed(self.ids[-most:]))

    def named(self, ids: Iterable[int]) -> list[LogEntry]:
        """The requests with these ids, in this order."""
        wanted = list(ids)
        with self._account.ledger.lock.checked():
            self._sync()
            missing = [one for one in wanted if one not in self._settled]
            parts = (tuple(missing[start : start + ROWS_PER_QUERY]) for start in range(0, len(missing), ROWS_PER_QUERY))
            fresh = {charge.id: self._line(charge) for part in parts for charge in self._account.ledger.by_id(part)}
            return [self._placed(fresh.get(one) or self._settled[one]) for one in wanted]

    def cells(self) -> dict[str, CellCost]:
        """What each notebook cell was charged, over everything that it ever asked."""
        with self._account.ledger.lock.checked():
            self._sync()
            for cell, rows in self._rows.items():
                if cell not in self._costs:
                    self._costs[cell] = rows.cost
            return dict(self._costs)

    def to_pandas(self) -> pd.DataFrame:
        """All requests, oldest first: question, mu, delta, share of the budget, error, status, time and cell."""
        import pandas as pd  # imported when first used

        lines = self.named(self.ids)
        columns = {
            "question": [line.question for line in lines],
            "mu": [line.mu for line in lines],
            "delta": [decimal_up(delta) if (delta := line.loss.delta) else 0.0 for line in lines],
            "share": [line.share for line in lines],
            "error": [line.error for line in lines],
            "status": [line.status for line in lines],
            "time": pd.to_datetime([line.time for line in lines], utc=True),
            "cell": [line.cell for line in lines],
        }
        return pd.DataFrame(columns, index=pd.Index([line.id for line in lines], name="id"))

    def _sync(self) -> None:
        for charge in self._account.ledger.summaries(after=self._seen):
            self._seen = charge.id
            if self._account.includes(charge.node):
                self._ids.append(charge.id)
                if charge.cell_id is not None:
                    self._move(charge, charge.cell_id)

    def _move(self, charge: Charge | ChargeSummary, cell: str) -> None:
        """From the cell that asked for a row before to the one that does now."""
        before = self._cell.get(charge.id)
        if before is not None:
            self._rows[before].remove(charge.id)
            self._costs.pop(before, None)
            if not self._rows[before]:
                del self._rows[before]
        self._cell[charge.id] = cell
        self._rows.setdefault(cell, _CellRows()).add(charge.id, charge.loss, self._account.budget_fraction(charge.id))
        self._costs.pop(cell, None)

    def _placed(self, line: LogEntry) -> LogEntry:
        """With the cell that asked last."""
        cell = self._cell.get(line.id)
        return line if cell == line.cell else replace(line, cell=cell)

    def _line(self, charge: Charge) -> LogEntry:
        """A row in words.  What was released once does not change, so that is worked out once."""
        share, cell = self._account.budget_fraction(charge.id), self._cell.get(charge.id)
        if charge.launch is not None or charge.result is not None:
            words = printable(launch_text.of(charge))
            return LogEntry(charge.id, words, charge.loss, share, None, charge.time, charge.status, cell)
        plan, request = plan_of(charge), request_of(charge)
        question = printable(describe_plan(plan, request.view))
        if charge.status != "released":
            return LogEntry(charge.id, question, charge.loss, share, None, charge.time, charge.status, cell)
        try:
            error = self._error(charge, plan, request)
        except PlanError:  # what an earlier version of dpnb answered may be refused by now
            error = None
        line = LogEntry(charge.id, question, charge.loss, share, error, charge.time, charge.status, cell)
        self._settled[charge.id] = line
        return line
