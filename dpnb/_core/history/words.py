"""What the log shows of a row of the ledger: the request and its answer in words.

The words of an answer are a function of request and released values.  They are stored with the answer, and the
audit computes them again.
"""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial

import msgspec

from dpnb._compile import LinearQuery
from dpnb._core.history.launch_text import row_in_words, selected_keys
from dpnb._core.ledger_metadata import LedgerMetadata
from dpnb._core.pricing.estimation import EstimateReader
from dpnb._core.pricing.pricer import combined
from dpnb._core.pricing.query_state import Released, batch_table_of, request_of
from dpnb._core.tables import PrivateTables
from dpnb._plan.measurements import Discovery
from dpnb._plan.plan import describe_plan, in_words
from dpnb._request import BatchTable, Release, request_from
from dpnb.copying import NotCopyable
from dpnb.errors import PlanError, printable
from dpnb.ledger import Charge, Ledger
from dpnb.ledger.charge import RELEASE, SELECTION, Words
from dpnb.ledger.declared import extends
from dpnb.results.observations import CombinedObservations, Observation

MAX_KEPT = 10_000
"""Numbers of an answer whose estimates are kept."""


class AnswerReader(NotCopyable):
    """Reads the answers of recorded rows; the rows of the tables are not read."""

    def __init__(self, tables: PrivateTables, ledger: Ledger) -> None:
        self._tables, self._ledger = tables, ledger
        self._declared: dict[int, PrivateTables] = {}  # by the number of the declaration
        self._last: tuple[list[Charge], EstimateReader] | None = None

    def estimates(self, query: LinearQuery, request: Released, charges: list[Charge]) -> EstimateReader:
        """The estimates of a query from the rows whose measurements they combine.

        Those of a new answer are kept for the next call: it is read for its words, and then for itself.
        """
        known, self._last = self._last, None
        if known is not None:
            rows, reader = known
            if reader.query is query and reader.request == request and _measure_the_same(rows, charges):
                return reader
        return self._read(self._tables, query, request, charges)

    def tables_of(self, charge: Charge) -> PrivateTables:
        """The tables as they were declared for a row, which may be about another version with other columns."""
        number = self._ledger.declaring(charge.id)
        if number not in self._declared:
            theirs = self._ledger.declaration(number)
            self._declared[number] = (
                self._tables
                if extends(self._ledger.opened, theirs)
                else LedgerMetadata.from_dict(theirs.metadata, self._ledger.path).tables
            )
        return self._declared[number]

    def _read(
        self, tables: PrivateTables, query: LinearQuery, request: Released, charges: list[Charge]
    ) -> EstimateReader:
        if isinstance(query.plan.aggregation, Discovery):
            keys = charges[0].group_keys or ()
            refinement = CombinedObservations((Observation(charges[0].gdp, charges[0].measurement),), None, len(keys))  # type: ignore[arg-type]
        else:
            keys, refinement = query.keys or ((),), combined(tables, self._ledger, query, charges)
        return EstimateReader(query, request, refinement, keys, tables.schema(query.plan.source))

    def observations_of(self, charge: Charge) -> list[Charge]:
        """The rows whose measurements an answer combines."""
        if charge.observations == (charge.id,):
            return [charge]
        rows = self._ledger.by_id(charge.observations)
        return [charge if row.id == charge.id else row for row in rows]

    def words(self, charge: Charge) -> Words:
        """A row in words, with its answer if it has one that can be read."""
        with suppress(PlanError):  # the query is refused by now
            return self._with_answer(charge, self.tables_of(charge))
        return _request(charge), None, None, None, None, None

    def words_to_store(self, charge: Charge) -> str | None:
        """The `stored_words` of a new answer; None if they cannot be made.

        An answer is written in any case.  Otherwise its charge would be answered again with other noise, and so would
        all answers with values of which no words can be made.
        """
        try:
            return self._stored(charge, self._tables)
        except Exception:  # noqa: BLE001  (no kind of failure may decide whether an answer is written)
            return None

    def stored_words(self, charge: Charge) -> str | None:
        """The words that are stored with the answer of a row; None for a row without an answer of its own.

        The tables of a batch are estimated together, once all of them are answered.  Raises `PlanError` if the query is
        refused by now.
        """
        return self._stored(charge, self.tables_of(charge))

    def _stored(self, charge: Charge, tables: PrivateTables) -> str | None:
        if (charge.measurement is None and charge.result is None) or batch_table_of(charge) is not None:
            return None
        return json.dumps(self._with_answer(charge, tables), ensure_ascii=False)

    def _with_answer(self, charge: Charge, tables: PrivateTables) -> Words:
        answer = None
        if charge.kind == RELEASE and charge.measurement is not None:
            request = request_of(charge)
            query = tables.compile(request.plan)
            charges = self.observations_of(charge)
            read = self.estimates if tables is self._tables else partial(self._read, tables)
            estimates = read(query, request, charges)
            if query.numbers <= MAX_KEPT:
                self._last = charges, estimates
            if estimates.refinement.observations:  # else a table of its batch is not answered yet
                return printable(estimates.description), *estimates.summary, estimates.error
        elif charge.kind == SELECTION and charge.result is not None:
            answer = printable(selected_keys(charge))
        return _request(charge), answer, None, None, None, None


def title_of_request(words: str, request: str) -> str:
    """The words of a row as a reader says them; the words themselves where a request has no other ones."""
    with suppress(PlanError, msgspec.MsgspecError, RecursionError):
        made = request_from(request)
        if isinstance(made, Release | BatchTable):
            return in_words(words, made.plan, made.view)
    return words


def _measure_the_same(rows: list[Charge], others: list[Charge]) -> bool:
    same = [
        row.id == other.id and row.measurement is other.measurement is not None
        for row, other in zip(rows, others, strict=False)
    ]
    return len(rows) == len(others) and all(same)


def _request(charge: Charge) -> str:
    """What was requested, or done; of an above-threshold scan, with the answer."""
    if charge.kind == RELEASE:
        request = request_of(charge)
        return printable(describe_plan(request.plan, request.view))
    return printable(row_in_words(charge))
