"""The log of a session: every request in words, with its cost, its error and the cell that made it; and the refusals.

Requests are read from the ledger, so every kernel sees all of them.  The words of an answer are stored with it; those
of other rows are made from the row.  Refusals cost nothing and are known only to this process.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from dpnb._browser.snapshot import Refusal
from dpnb._core import open_sessions
from dpnb._core.accountant.accountant import Accountant
from dpnb._core.history.words import charged_words, title_of_request
from dpnb._core.pricing.estimation import AnswerSummary
from dpnb.accounting.convert import convert
from dpnb.accounting.exact import decimal_up, exact
from dpnb.accounting.guarantee import PrivacyGuarantee
from dpnb.accounting.losses import GDP, Loss, PureGDP
from dpnb.errors import ConversionError, DpnbError, printable
from dpnb.ledger import Charge, ChargeSummary, refuse_unreadable
from dpnb.ledger.charge import ACT, BUDGET_REQUEST, GRANT, RELEASE, Words, words_of
from dpnb.ledger.queries import MAX_STORED
from dpnb.render.refusals import explanation_for

if TYPE_CHECKING:
    import pandas as pd

_Row = tuple[str, str, str, str | None, float | None, float | None, float | None, str | None]
"""Time and status of a row, and its `Words`."""

QUERY, ANSWER = 2, 3
"""Indices of the request and the answer in a row."""

MAX_REFUSALS = 20

NOT_LOGGED = ACT, BUDGET_REQUEST, GRANT
"""Kinds of rows that are no requests for an answer."""

ROWS_PER_QUERY = 100
"""Rows read from the ledger at once: SQLite limits the number of ids, and a row may have thousands of values."""


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request.

    `id`, `time` and `status` are those of its row in the ledger; `title` is the query as a reader says it.  `mu` and
    `cost` are what was charged to its node: `mu` rounded up (see `PrivacyGuarantee.charged_gdp`), `cost` in words;
    `cost_fraction` is the cost for this session as a fraction of the whole budget, rounded up.  `answer` and `error`,
    the half-width of its intervals in words, are None without an answer.  `cell_id` is the notebook cell that made the
    request: the latest one in this kernel, otherwise the first one.  `analyst` is who requested it, where analysts of a
    service see each other's requests.
    """

    id: int
    query: str
    title: str
    mu: float
    cost: str
    cost_fraction: float
    answer: AnswerSummary | None
    error: str | None
    time: str
    status: str
    cell_id: str | None
    analyst: str | None = None


@dataclass(frozen=True)
class CellCost:
    """What the requests of one notebook cell were charged, in all of its executions.

    `ids` are the rows that it requested, ascending.  `loss` is what their nodes were charged: mu squared adds (Smith
    and Thakurta 2022, Theorem 1); None if the loss of one of them implies no mu.  `cost_fraction` is their total cost
    for this session as a fraction of the whole budget, rounded up, NaN without a budget; `reserve_fraction` the same of
    the reserve for pure losses, 0 without a reserve.
    """

    ids: tuple[int, ...]
    loss: GDP | None
    cost_fraction: float
    reserve_fraction: float = 0.0


class _CellRows:
    """The rows that one cell requested, with running sums, since a cell with a loop can make thousands of requests."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[GDP | None, Fraction, Fraction]] = {}
        self._loss, self._cost_fraction, self._reserve_fraction = GDP(0), Fraction(0), Fraction(0)
        self._n_without_gdp, self._has_budget = 0, True

    def __bool__(self) -> bool:
        return bool(self._rows)

    def add(self, row: int, loss: GDP | None, cost_fraction: float, reserve_fraction: Fraction) -> None:
        self._has_budget = not math.isnan(cost_fraction)  # for all rows of a session or for none
        self._rows[row] = loss, exact(cost_fraction) if self._has_budget else Fraction(0), reserve_fraction
        self._sum(row, 1)

    def remove(self, row: int) -> None:
        self._sum(row, -1)
        del self._rows[row]

    def _sum(self, row: int, sign: int) -> None:
        loss, cost_fraction, reserve_fraction = self._rows[row]
        if loss is None:
            self._n_without_gdp += sign
        else:
            self._loss = self._loss + loss if sign > 0 else self._loss - loss
        self._cost_fraction += sign * cost_fraction
        self._reserve_fraction += sign * reserve_fraction

    @property
    def cost(self) -> CellCost:
        loss = None if self._n_without_gdp else self._loss
        fraction = decimal_up(self._cost_fraction) if self._has_budget else math.nan
        return CellCost(tuple(sorted(self._rows)), loss, fraction, decimal_up(self._reserve_fraction))


def charged_mu(guarantee: PrivacyGuarantee, loss: Loss, charged: PureGDP | None) -> float:
    """What was charged for a loss, as a mu, rounded up."""
    return guarantee.charged_gdp(loss, charged).mu


def _cost_in_words(guarantee: PrivacyGuarantee, loss: Loss, charged: PureGDP | None) -> str:
    return charged_words(guarantee, loss, charged) if loss else "free"


def gdp_of(loss: Loss) -> GDP | None:
    """The GDP that a loss implies; None if it implies none."""
    try:
        return convert(loss, GDP)
    except ConversionError:
        return None


class RequestLog:
    """Every request of one ledger, and the refusals of this process.

    `words` returns the words of a row that does not store them.
    """

    def __init__(self, account: Accountant, words: Callable[[Charge], Words]) -> None:
        self._account, self._words = account, words
        # Most requests have one of a few losses, and a snapshot shows many requests.
        self._mu_of = lru_cache(maxsize=1024)(partial(charged_mu, account.guarantee))
        self._cost_of = lru_cache(maxsize=1024)(partial(_cost_in_words, account.guarantee))
        self._final: dict[int, _Row] = {}  # those that no longer change
        self._titles: dict[tuple[int, str], str] = {}
        self._cell_ids: dict[int, str] = {}
        self._cells: dict[str, _CellRows] = {}
        self._costs: dict[str, CellCost] = {}  # of the cells without a new request
        self._ids: list[int] = []
        self._last_id = 0
        self._n_refusals = 0
        self.refusals: deque[Refusal] = deque(maxlen=MAX_REFUSALS)

    def note_request(self, charge: Charge, cell_id: str | None) -> None:
        """Record that a cell requested a row of the ledger, for the first time or again.

        Where the server runs the cells, the id may become known only after the request.
        """
        self._note_cell(charge.id, cell_id)
        open_sessions.when_cell_identified(partial(self._note_cell, charge.id))

    def _note_cell(self, row: int, cell_id: str | None) -> None:
        if cell_id is None:
            return
        with self._account.ledger.lock.checked():
            self._sync()
            if cell_id != self._cell_ids.get(row):
                self._assign(self._account.ledger.summary(row), cell_id)

    def note_refusal(
        self, query: str, error: DpnbError, cell_id: str | None, spoken: Callable[[str], str] | None = None
    ) -> None:
        """Record that a request was refused, with the title that `spoken` makes of its words."""
        self._n_refusals += 1
        message = str(error).removeprefix(f"{printable(query)}: ")
        query = printable(query if spoken is None else spoken(query))
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.refusals.appendleft(Refusal(self._n_refusals, query, message, explanation_for(error).id, now, cell_id))

    @property
    def count(self) -> int:
        """The number of requests."""
        return len(self.ids)

    @property
    def ids(self) -> list[int]:
        """Ids of the rows of the ledger, oldest first.

        These are the rows of this session and its mechanisms, except for sub-sessions, which have separate logs.
        """
        with self._account.ledger.lock.checked():
            self._sync()
            return self._ids

    def latest(self, count: int) -> list[LoggedRequest]:
        """The last `count` requests, newest first."""
        return self.by_id(reversed(self.ids[-count:]))

    def by_id(self, ids: Iterable[int]) -> list[LoggedRequest]:
        """The requests with these ids, in this order."""
        ids = list(ids)
        with self._account.ledger.lock.checked():
            self._sync()
            rows = self._rows(ids)
            return list(map(self._entry, ids, rows, self._titles_of(ids, rows)))

    def cells(self) -> dict[str, CellCost]:
        """The costs of the notebook cells, by the ids of the cells."""
        with self._account.ledger.lock.checked():
            self._sync()
            for cell_id, rows in self._cells.items():
                if cell_id not in self._costs:
                    self._costs[cell_id] = rows.cost
            return dict(self._costs)

    def to_pandas(self) -> pd.DataFrame:
        """All requests, oldest first; see `BaseSession.log` for the columns."""
        import pandas as pd  # imported when first used

        with self._account.ledger.lock.checked():
            ids = list(self.ids)
            rows, all_charges = self._rows(ids), self._account.ledger.summaries()
            charges = [all_charges[number - 1] for number in ids]
            costs = [self._account.cost_fraction(number) for number in ids]
            cells = [self._cell_ids.get(number) for number in ids]
        times, statuses, queries, estimates, _, _, _, errors = zip(*rows, strict=True) if rows else ((),) * 8
        losses = {(id(charge.loss), charge.charged): charge.loss for charge in charges}  # most requests share one
        mus = {(key, charged): self._mu_of(loss, charged) for (key, charged), loss in losses.items()}
        deltas = {key: decimal_up(loss.delta) if loss.delta else 0.0 for (key, _), loss in losses.items()}
        columns = {
            "query": list(queries),
            "estimate": list(estimates),
            "error": list(errors),
            "cost_fraction": costs,
            "status": list(statuses),
            "time": pd.to_datetime(list(times), utc=True),
            "mu": [mus[id(charge.loss), charge.charged] for charge in charges],
            "delta": [deltas[id(charge.loss)] for charge in charges],
            "cell_id": cells,
        }
        if self._account.budget.pure_epsilon:
            columns["pure_epsilon"] = [
                decimal_up(charge.charged.epsilon) if charge.charged is not None else 0.0 for charge in charges
            ]
        if any(charge.origin is not None for charge in charges):
            columns["analyst"] = [None if charge.origin is None else charge.origin.actor for charge in charges]
        return pd.DataFrame(columns, index=pd.Index(ids, name="id"))

    def _sync(self) -> None:
        for charge in self._account.ledger.summaries(after=self._last_id):
            self._last_id = charge.id
            if self._account.includes(charge.node) and charge.kind not in NOT_LOGGED:
                self._ids.append(charge.id)
                if charge.cell_id is not None:
                    self._assign(charge, charge.cell_id)

    def _assign(self, charge: ChargeSummary, cell_id: str) -> None:
        """Assign a row to the cell that requested it last."""
        before = self._cell_ids.get(charge.id)
        if before is not None:
            self._cells[before].remove(charge.id)
            self._costs.pop(before, None)
            if not self._cells[before]:
                del self._cells[before]
        self._cell_ids[charge.id] = cell_id
        rows = self._cells.setdefault(cell_id, _CellRows())
        implies_mu = gdp_of(charge.loss) is not None
        charged = self._account.guarantee.charged_gdp(charge.loss, charge.charged) if implies_mu else None
        rows.add(charge.id, charged, self._account.cost_fraction(charge.id), self._account.reserve_fraction(charge))
        self._costs.pop(cell_id, None)

    def words(self, ids: Iterable[int]) -> list[Words]:
        """The rows with these ids in words, in this order."""
        with self._account.ledger.lock.checked():
            return [words for _, _, *words in self._rows(list(ids))]  # type: ignore[misc]  # of the rest of a row

    def _titles_of(self, ids: list[int], rows: list[_Row]) -> list[str]:
        """The titles of rows that are shown: they follow from the request, so they are not stored."""
        named = [(number, str(row[QUERY])) for number, row in zip(ids, rows, strict=True)]
        missing = [one for one in named if one not in self._titles]
        for start in range(0, len(missing), MAX_STORED):
            words = dict(missing[start : start + MAX_STORED])
            for found in self._account.ledger.stored(tuple(words), ("id", "request")):
                number = int(found["id"] or 0)
                self._titles[number, words[number]] = title_of_request(words[number], str(found["request"]))
        return [self._titles[one] for one in named]

    def _rows(self, ids: list[int]) -> list[_Row]:
        """The rows with these ids; those that no longer change are kept."""
        found: dict[int, _Row] = {}
        ledger, missing = self._account.ledger, [row for row in ids if row not in self._final]
        for start in range(0, len(missing), MAX_STORED):
            part = missing[start : start + MAX_STORED]
            for number, time, status, words in ledger.words(part):
                if words is not None:
                    with refuse_unreadable(f"row {number}"):
                        self._final[number] = time, status, *words_of(words)
            others = [row for row in part if row not in self._final]
            for at in range(0, len(others), ROWS_PER_QUERY):
                for charge in ledger.by_id(tuple(others[at : at + ROWS_PER_QUERY])):
                    row = charge.time, charge.status, *self._words(charge)
                    is_final = charge.status == "released" and (charge.kind != RELEASE or row[ANSWER] is not None)
                    (self._final if is_final else found)[charge.id] = row
        return [self._final[number] if number in self._final else found[number] for number in ids]

    def _entry(self, number: int, row: _Row, title: str) -> LoggedRequest:
        charge = self._account.ledger.summary(number)
        time, status, query, text, value, low, high, error = row
        return LoggedRequest(
            id=number,
            query=query,
            title=title,
            mu=self._mu_of(charge.loss, charge.charged),
            cost=self._cost_of(charge.loss, charge.charged),
            cost_fraction=self._account.cost_fraction(number),
            answer=None if text is None else AnswerSummary(text, value, low, high),
            error=error,
            time=time,
            status=status,
            cell_id=self._cell_ids.get(number),
            analyst=None if charge.origin is None else charge.origin.actor,
        )
