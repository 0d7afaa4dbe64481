"""The rows of a ledger as one analyst may see them.

An analyst sees the rows of one node and of everything launched inside it, and nothing that depends on other rows: their
rows are numbered 1, 2, ... among themselves, every reference to a row uses these numbers, and hashes, which chain a row
to all earlier ones, are not shared; neither are rows about the table's files, nor the ids of requests.  Analysts who
share a budget also see who made each request.

These rows have a chain of hashes of their own, the one that the analyst's copy computes from what it receives
(`dpnb.ledger.replica`).  By its last hash a copy is recognised that has rows which this ledger does not contain.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Any

from dpnb._request import BATCH_TABLE, BatchTable, request_from
from dpnb.copying import NotCopyable
from dpnb.errors import LedgerError, LedgerReplaced, RequestError
from dpnb.ledger import charge as row
from dpnb.ledger.chain import chain_start
from dpnb.ledger.charge import ChargeSummary, chained_hash
from dpnb.ledger.connection import refuse_unreadable
from dpnb.ledger.declared import OF_VERSION, Declared, Earlier, before_stated, of_version
from dpnb.ledger.ledger import Ledger
from dpnb.ledger.origin import ROOT, RequestOrigin, is_node, parent_launch
from dpnb.ledger.queries import MAX_STORED

NOT_SHARED = {"request_id", "request_digest", "hash", "result_hash"}
"""Columns that no analyst sees."""

SHARED_COLUMNS = tuple(name for name in row.COLUMNS if name not in NOT_SHARED)

SharedRow = dict[str, str | int]
"""Column names and values of a row; a column that is NULL is absent."""


class SharedRows(NotCopyable):
    """The rows of one node's subtree, numbered 1, 2, ...

    The numbers never change.  Every row of the ledger is looked at once; a call reads only the rows that it returns.

    `root` is the node of the analyst; for the analyst it is the root.  `metadata` and `parameters` are what the analyst
    knows as those of the ledger; by default its own.  With `shows_actors` the rows say who made each request.
    """

    def __init__(
        self,
        ledger: Ledger,
        root: str = ROOT,
        *,
        shows_actors: bool = False,
        metadata: Mapping[str, str] | None = None,
        parameters: Mapping[str, str] | None = None,
    ) -> None:
        self._ledger, self._root = ledger, root
        known = ledger.opened
        metadata = known.metadata if metadata is None else before_stated(metadata)
        self._known = metadata, parameters or known.parameters
        start = chain_start(ledger.path, *self._known)
        self._chain = bytearray.fromhex(start.hash)  # the hashes of rows 0, 1, ...
        self._columns = tuple(name for name in SHARED_COLUMNS if shows_actors or name != "actor")
        self._ids: list[int] = []  # ids in the ledger of rows 1, 2, ...
        self._numbers: dict[int, int] = {}
        self._launches: set[int] = set()  # ids in the ledger
        self._grants: set[int] = set()  # likewise; the acts about them have their nodes
        self._requests: dict[str, tuple[int, RequestOrigin]] = {}
        self._versions: dict[str, str] = {}  # of the table, by the id of a request
        self._unreleased: set[int] = set()  # ids in the ledger, some of which may be released by now
        self._last_id = 0

    # --- reading ------------------------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """The number of rows."""
        with self._ledger.lock.checked():
            self._sync()
            return len(self._ids)

    @property
    def answered(self) -> int:
        """The number of rows that are released."""
        with self._ledger.lock.checked():
            self._sync()
            for part in _parts(self._unreleased):
                self._unreleased -= self._ledger.released_among(part)
            return len(self._ids) - len(self._unreleased)

    def after(self, number: int, limit: int) -> list[SharedRow]:
        """The rows with a number larger than `number`, in order: the first `limit` of them, and the rest of a batch.

        Fewer if they are large.  The tables of a batch are estimated together, so a copy must not end in the middle of
        one.
        """
        with self._ledger.lock.checked():
            self._sync()
            start = max(number, 0)
            rows = self._first(self._ids[start : start + max(limit, 1)])
            while rows and len(self._ids) > start + len(rows) and (missing := _missing_of_batch(rows[-1])):
                rows += self._read(self._ids[start + len(rows) : start + len(rows) + missing])
            return rows

    def changed(self, pending: Iterable[int]) -> list[SharedRow]:
        """Those of the rows with these numbers that are no longer reserved, in order; other numbers are ignored.

        If they are large only the newest of them, so that a copy asks for the others again.
        """
        with self._ledger.lock.checked():
            self._sync()
            known = sorted({number for number in pending if 0 < number <= len(self._ids)}, reverse=True)
            rows = self._first([self._ids[number - 1] for number in known], finished=True)
            return sorted((one for one in rows if one["status"] != "reserved"), key=lambda one: one["id"])

    def by_ids(self, ids: Iterable[int]) -> tuple[int, ...]:
        """The numbers of rows with these ids in the ledger, in this order; the analyst must be allowed to see them."""
        with self._ledger.lock.checked():
            self._sync()
            return tuple(map(self._number, ids))

    def id_of(self, number: int) -> int:
        """The id in the ledger of the row with a number; 0 before the first one."""
        with self._ledger.lock.checked():
            self._sync()
            return self._ids[number - 1] if number else 0

    def request(self, request_id: str) -> tuple[int, RequestOrigin] | None:
        """The number and the origin of the first row that a request wrote; None if it has not written any."""
        with self._ledger.lock.checked():
            self._sync()
            return self._requests.get(request_id)

    def version_of(self, request_id: str) -> str | None:
        """The version of the table for which a request wrote its first row; None if it has not written any."""
        with self._ledger.lock.checked():
            self._sync()
            return self._versions.get(request_id)

    def declarations(self) -> list[tuple[int, Declared]]:
        """What the ledger declared one after the other, each with the number of rows until its end."""
        with self._ledger.lock.checked():
            self._sync()
            periods = self._ledger.periods
            ends = [bisect_left(self._ids, one.start) for one in periods[1:]]
            return [*zip((*ends, len(self._ids)), (one.declared for one in periods), strict=True)]

    @property
    def earlier(self) -> Earlier:
        """The earlier declarations that some of the rows are about, as an analyst knows them."""
        return earlier_of(self.declarations()[:-1], *self._known)

    # --- the chain of hashes ------------------------------------------------------------------------------------

    def head(self, number: int) -> str:
        """The hash of the row with a number, one of those that there are; of 0, that of metadata and parameters.

        Each row is hashed once; the ledger is locked for a few rows at a time.
        """
        while True:
            with self._ledger.lock.checked():
                known = len(self._chain) // HASH_BYTES - 1
                if number <= known:
                    return self._chain[number * HASH_BYTES :][:HASH_BYTES].hex()
                self._sync()
                previous, ids = self._chain[-HASH_BYTES:].hex(), self._ids[known : known + HASHED_AT_ONCE]
                rows = self._ledger.stored(ids, row.RESERVED_COLUMNS)
                if not rows or [one["id"] for one in rows] != ids:
                    raise LedgerError(f"ledger: must have the rows from {known + 1} on; they were removed")
                for stored in rows:
                    shared = self._shared(stored)
                    previous = chained_hash(previous, {name: shared.get(name) for name in row.RESERVED_COLUMNS})
                    self._chain += bytes.fromhex(previous)

    def refuse_fork(self, number: int, head: str) -> None:
        """Refuse a copy whose last row, with this number and hash, is not one of these rows.

        If `head` is empty, only the number is compared.
        """
        if number > self.count or (head and self.head(number) != head):
            raise LedgerReplaced(
                f"table: the service's ledger does not contain row {number} as this session has received it; nothing "
                "was charged; the curator has declared other columns for a new version of the table, or may have "
                "restored an older ledger: connect again, and tell the curator if you do not expect this"
            )

    # --- the analyst's references -------------------------------------------------------------------------------

    def launch(self, number: int) -> int:
        """The id in the ledger of a launch."""
        with self._ledger.lock.checked():
            self._sync()
            launch = self._ids[number - 1] if 0 < number <= len(self._ids) else None
            if launch not in self._launches:
                raise RequestError(f"launch: must be the number of a row that launched a mechanism; got {number}")
            return self._ids[number - 1]

    def node(self, node: str) -> str:
        """The node in the ledger of one of the analyst's nodes."""
        if node == ROOT:
            return self._root
        parent = parent_launch(node) if is_node(node) and len(node.partition(" ")[0]) < MAX_DIGITS else None
        if parent is None:
            raise RequestError(
                "node: must be that of a session, a sub-session, a part or a mechanism; got another text"
            )
        return _renumbered(node, self.launch(parent[0]))

    # --- translation --------------------------------------------------------------------------------------------

    def _sync(self) -> None:
        for charge in self._ledger.summaries(after=self._last_id):
            self._last_id = charge.id
            if self._includes(charge):
                self._ids.append(charge.id)
                self._numbers[charge.id] = len(self._ids)
                self._unreleased.add(charge.id)
                if charge.kind == row.LAUNCH:
                    self._launches.add(charge.id)
                elif charge.kind == row.GRANT:
                    self._grants.add(charge.id)
                if charge.origin is not None and charge.origin.id is not None:
                    self._requests.setdefault(charge.origin.id, (len(self._ids), charge.origin))
                    self._versions.setdefault(charge.origin.id, charge.table_version)

    def _includes(self, charge: ChargeSummary) -> bool:
        """Whether a row belongs to the subtree; a launch is written before everything inside it.

        Of a part of the budget that was granted there, only the acts about it: in reserved mode everything else in its
        node is for its analyst alone.
        """
        if charge.kind in row.ABOUT_TABLE:
            return False
        parent = parent_launch(charge.node)
        if charge.node == self._root or parent is None:
            return charge.node == self._root
        return parent[0] in self._launches or (parent[0] in self._grants and charge.kind == row.ACT)

    def _first(self, ids: list[int], *, finished: bool = False) -> list[SharedRow]:
        """The first of the rows with these ids that are not too large together; at least one.

        Their sizes are read before any of them, since one row may have as many characters as a large answer.
        """
        chosen: list[int] = []
        size = 0
        for start in range(0, len(ids), MEASURED_AT_ONCE):
            part = ids[start : start + MEASURED_AT_ONCE]
            sizes = self._ledger.sizes(part, finished=finished)
            for one in part:
                if one in sizes:
                    size += sizes[one]
                    if chosen and size > MAX_BYTES:
                        return self._read(chosen)
                    chosen.append(one)
        return self._read(chosen)

    def _read(self, ids: list[int]) -> list[SharedRow]:
        return [self._shared(stored) for part in _parts(ids) for stored in self._ledger.stored(part)]

    def _shared(self, stored: dict[str, Any]) -> SharedRow:
        with refuse_unreadable(f"row {stored['id']}"):
            details = stored["details"]
            if stored["kind"] in NAME_ROWS:
                content = json.loads(details)
                named = {name: self._number(content[name]) for name in NAMES_OF_ROWS if name in content}
                details = json.dumps({**content, **named}) if named else details
            changed = {
                "id": self._number(stored["id"]),
                "node": self._local_node(stored["node"]),
                "observations": json.dumps([self._number(one) for one in json.loads(stored["observations"])]),
                "details": details,
            }
        values = {**stored, **changed}
        return {name: values[name] for name in self._columns if values.get(name) is not None}

    def _local_node(self, node: str) -> str:
        if node == self._root:
            return ROOT
        parent = parent_launch(node)
        return node if parent is None else _renumbered(node, self._number(parent[0]))

    def _number(self, row_id: int) -> int:
        number = self._numbers.get(row_id)
        if number is None:
            raise LedgerError(f"ledger: row {row_id} must be one of the analyst's; it belongs to another node")
        return number


def earlier_of(
    declarations: list[tuple[int, Declared]], metadata: Mapping[str, str], parameters: Mapping[str, str]
) -> Earlier:
    """The columns and limits of earlier declarations, with what else an analyst knows, and the last rows about them."""
    last = {until: of_version(declared.metadata) for until, declared in reversed(declarations) if until}
    others = {name: text for name, text in metadata.items() if name not in OF_VERSION}
    return tuple((until, Declared({**others, **own}, parameters)) for until, own in sorted(last.items()))


NAME_ROWS, NAMES_OF_ROWS = (row.ACT, row.CLOSE), ("request", "row", "closes")
"""The kinds of rows whose details have ids of rows, and their names."""

HASH_BYTES = 32
"""Bytes of a hash."""

HASHED_AT_ONCE = 20
"""Rows that are hashed before others may use the ledger."""


MEASURED_AT_ONCE = 20
"""Rows whose sizes are read at once; an older SQLite reads the rows for that."""

MAX_BYTES = 2**22
"""Bytes of the rows that are returned at once, apart from a first one that is larger and the rest of a batch."""

MAX_DIGITS = 19
"""Digits of a row's number, which SQLite stores in 64 bits."""


def _parts(ids: Iterable[int]) -> list[list[int]]:
    """The ids, at most `MAX_STORED` at once."""
    whole = list(ids)
    return [whole[start : start + MAX_STORED] for start in range(0, len(whole), MAX_STORED)]


def _renumbered(node: str, launch: int) -> str:
    """The node with another number of its launch."""
    _, blank, part = node.partition(" ")
    return f"{launch}{blank}{part}"


def _missing_of_batch(shared: SharedRow) -> int:
    """The number of rows of its batch that follow a row."""
    text = str(shared["request"])
    table = request_from(text) if text.startswith(BATCH_TABLE) else None
    return max(table.count - table.index - 1, 0) if isinstance(table, BatchTable) else 0
