"""Copies in memory of rows of a ledger: of its first rows, and of those that one analyst may see.

A copy is a ledger, so everything that reads a ledger reads a copy.  Nothing can be charged on it.

A remote session reads a copy of its analyst's rows.  They come from the service and are checked like those of a file;
the copy has its own chain of hashes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from dpnb._request import request_from
from dpnb.copying import safe_repr
from dpnb.errors import LedgerError
from dpnb.ledger import charge as row
from dpnb.ledger.chain import ChainHead
from dpnb.ledger.charge import ANSWER_COLUMNS, Charge, chained_hash, charge_of, sealed, summary_of
from dpnb.ledger.connection import MEMORY, refuse_unreadable
from dpnb.ledger.declared import STATED, Earlier, before_stated
from dpnb.ledger.ledger import Ledger
from dpnb.ledger.origin import parent_launch
from dpnb.ledger.queries import INSERT, MAX_STORED, UPDATE, end_of
from dpnb.ledger.shared_rows import SHARED_COLUMNS


class ReadOnlyLedger(Ledger):
    """A ledger in memory with the rows of another one, on which nothing can be charged."""

    _may_lack_answers = True
    _writing = "must be charged by its session; this is a copy; nothing was charged"

    def __init__(
        self, path: str, metadata: Mapping[str, str], parameters: Mapping[str, str], earlier: Earlier = ()
    ) -> None:
        super().__init__(MEMORY, before_stated(metadata), parameters)
        self.path, self.earlier, self._stated = path, earlier, metadata.get(STATED)
        self._declared = None  # what is declared last, among the rows that are added to it

    def stated(self, count: int | None = None) -> str | None:
        """What the curator stated when the copy was made, if it has no rows about that."""
        found = super().stated(count)
        return self._stated if found is None and count is None else found

    @property
    def short_name(self) -> str:
        """Where the ledger is."""
        return self.path

    def reserve(self, **columns: object) -> NoReturn:
        """Refuse: this is a copy."""
        raise LedgerError(f"ledger {self.path!r}: {self._writing}")

    def _finish(self, charge: Charge, status: str, result: str | None, words: str | None = None) -> NoReturn:
        self.reserve()


# --- a copy in memory of the first rows of a ledger -------------------------------------------------------------------


class RowsCopy(ReadOnlyLedger):
    """A copy in memory of the first rows of a ledger (by default of all), with the same hashes.

    Later charges are not in it, and nothing can be charged on it.  An answer that is given while the rows are copied
    may or may not be in it.
    """

    _not_copied = "it is a copy of a ledger for one purpose; make another one"

    def __init__(self, ledger: Ledger, rows: int | None = None) -> None:
        super().__init__(ledger.path, *ledger.created, ledger.earlier)
        self._stated = ledger._stated if isinstance(ledger, ReadOnlyLedger) else None
        with ledger.lock.checked():
            count = ledger.count if rows is None else rows
            if not 0 <= count <= ledger.count:
                raise LedgerError(f"ledger {self.path!r}: must have {count} rows; it has {ledger.count}")
            for first in range(1, count + 1, MAX_STORED):
                self._append(ledger.stored(range(first, min(first + MAX_STORED, count + 1))))
        with self.transaction():  # verifies the chain
            pass

    def _append(self, rows: list[dict[str, Any]]) -> None:
        with self.lock.checked(), self._file.transaction():
            for stored in rows:
                self._file.run(INSERT, *(stored[name] for name in row.COLUMNS))
            head = ChainHead(rows[-1]["id"], rows[-1]["hash"])
            self._file.run("UPDATE head SET id = ?, hash = ?", *head)


# --- a copy in memory of the rows of a ledger that one analyst may see ------------------------------------------------


_RANK = {"reserved": 0, "failed": 1, "released": 2}
"""A row changes only to a status of higher rank; a message that arrives late has no effect."""


class ReplicaLedger(ReadOnlyLedger):
    """A copy in memory of an analyst's rows of a service's ledger, with that ledger's metadata and parameters.

    `address` says in words where the ledger is, for the repr and for errors.  It is also the `path`, so two copies of
    one ledger have the same path.  `earlier` are the declarations that its first rows are about, if they are others.
    """

    _not_copied = "it follows the ledger of a service; connect again"
    _writing = "must be charged by its service; this is a copy; nothing was charged; use the methods of the session"

    def __init__(
        self, address: str, metadata: Mapping[str, str], parameters: Mapping[str, str], earlier: Earlier = ()
    ) -> None:
        super().__init__(address, metadata, parameters, earlier)
        self._pending: set[int] = set()
        self._launches: set[int] = set()

    @safe_repr
    def __repr__(self) -> str:
        return f"<ReplicaLedger of {self.path!r}>"

    @property
    def pending(self) -> tuple[int, ...]:
        """Ids of the rows without an answer, ascending."""
        with self.lock.checked():
            return tuple(sorted(self._pending))

    # --- rows of the service ------------------------------------------------------------------------------------

    def append(self, rows: Sequence[Mapping[str, str | int]]) -> None:
        """Add new rows, and update the status and the answer of known ones, in one transaction.

        Rows that are known already, or in an older state, are ignored: replies and events may arrive twice and in
        another order.  Nothing is added, and a `LedgerError` raised, if a row is missing, is not one that a ledger may
        contain, or contradicts what was received before.  The rows are as `SharedRows` returns them.
        """
        with self.lock.checked():
            statuses: dict[int, str] = {}
            launches: set[int] = set()
            with self.transaction():
                for values in rows:
                    stored = self._checked(values)
                    known = self.stored((stored["id"],)) if stored["id"] <= self.count else []
                    if not known:
                        self._add(stored, launches)
                        statuses[stored["id"]] = stored["status"]
                    elif self._update(known[0], stored):
                        statuses[stored["id"]] = stored["status"]
            self._launches |= launches
            answered = {number for number, status in statuses.items() if status == "released"}
            self._pending = (self._pending | statuses.keys()) - answered

    def _checked(self, values: Mapping[str, str | int]) -> dict[str, Any]:
        """The columns of a row without its hashes, if each has the type that a ledger writes."""
        if not values.keys() <= {*SHARED_COLUMNS}:
            self._refuse("a row has other columns")
        stored: dict[str, Any] = {name: values.get(name) for name in row.COLUMNS} | {"hash": "", "result_hash": ""}
        if not row.is_row(tuple(stored.values())) or not 0 < stored["id"] < 2**63:
            self._refuse("a row has a value of another type")
        if stored["kind"] in row.ABOUT_TABLE:
            self._refuse(f"row {stored['id']} is not one that an analyst sees")
        return stored

    def _add(self, stored: dict[str, Any], launches: set[int]) -> None:
        ((last, previous),) = self._file.run("SELECT id, hash FROM head")
        number = stored["id"]
        if number != last + 1:
            self._refuse(f"row {number} came after row {last}")
        row.refuse_unknown(number, stored["kind"], stored["node"], path=self.path)
        stored["hash"] = chained_hash(previous, stored)
        stored["result_hash"] = end_of(stored["hash"], [stored[name] for name in ANSWER_COLUMNS])[-1]
        charge = self._readable(stored)
        known = self._launches | launches
        with refuse_unreadable(f"row {number}"):
            parent = parent_launch(charge.node)
            is_closing = charge.kind == row.CLOSE
            closes = (charge.launch or {})["closes"] if is_closing else None
        if parent is not None and parent[0] not in known:
            self._refuse(f"row {number} has the node of a launch or a grant that is missing")
        if is_closing and (type(closes) is not int or closes not in known):
            self._refuse(f"row {number} closes a launch that is missing")
        if any(one > number for one in charge.observations):
            self._refuse(f"row {number} combines a row that is missing")
        if self.by_key(charge.node, charge.table_version, charge.request_key) is not None:
            self._refuse(f"row {number} has the request of an earlier row")
        self._unwritten = number if self._unwritten is None else self._unwritten
        self._file.run(INSERT, *(stored[name] for name in row.COLUMNS))
        self._file.run("UPDATE head SET id = ?, hash = ?", number, stored["hash"])
        self._reserved = ChainHead(number, stored["hash"])
        if charge.kind in (row.LAUNCH, row.GRANT):
            launches.add(number)

    def _update(self, known: Mapping[str, Any], stored: dict[str, Any]) -> bool:
        """Update the status and the result of a row; return whether they have changed."""
        number = stored["id"]
        if any(known[name] != stored[name] for name in row.RESERVED_COLUMNS):
            self._refuse(f"row {number} is not what was received before")
        if _RANK[stored["status"]] <= _RANK[known["status"]]:
            if any(stored[name] != known[name] for name in ANSWER_COLUMNS) and stored["status"] == known["status"]:
                self._refuse(f"row {number} has another answer than was received before")
            return False
        self._readable(stored)
        self._file.run(UPDATE, *end_of(known["hash"], [stored[name] for name in ANSWER_COLUMNS]), number)
        return True

    def _readable(self, stored: Mapping[str, Any]) -> Charge:
        """The charge of a row, if it is one that a ledger may contain."""
        number = stored["id"]
        with refuse_unreadable(f"row {number}"):
            summary_of(tuple(stored[name] for name in row.SUMMARY_NAMES))
            charge = charge_of(stored)
            is_answer = stored["result"] is not None
            has_answer = charge.sigma is not None or charge.kind in (row.COMPARISON, row.SELECTION)
            if stored["words"] is not None:
                row.words_of(stored["words"])
            if (charge.request and request_from(charge.request).text) != charge.request:
                raise ValueError
        if sealed(stored["result"], stored["words"], stored["salt"]) != (stored["salt"], stored["answer_digest"]):
            self._refuse(f"row {number} has the digest of another answer")
        if is_answer != (has_answer and charge.status == "released"):
            self._refuse(f"row {number} is {charge.status} {'with' if is_answer else 'without'} an answer")
        if stored["words"] is not None and not is_answer:
            self._refuse(f"row {number} has the words of an answer that is missing")
        if charge.status != "released" and not (charge.sigma is not None or charge.kind == row.SELECTION):
            self._refuse(f"row {number} is {charge.status}, and has nothing to answer")
        return charge

    def _refuse(self, problem: str) -> NoReturn:
        raise LedgerError(
            f"ledger {self.path!r}: must send the rows of a ledger of dpnb, in order; {problem}; nothing was added; "
            "connect again"
        )
