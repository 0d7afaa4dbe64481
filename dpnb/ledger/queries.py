"""What is read from the file of a ledger: its metadata, and its rows by request, by node and by id."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpnb.errors import LedgerError
from dpnb.ledger import charge as row
from dpnb.ledger.chain import ChainHead
from dpnb.ledger.charge import ABOUT_BUDGET, REQUESTS, Charge, charge_of, result_hash
from dpnb.ledger.connection import MEMORY, refuse_unreadable
from dpnb.ledger.declared import STATED, Declared, DeclaredPeriod, Earlier, declared_in, extends
from dpnb.ledger.file_format import FORMAT, TABLES
from dpnb.ledger.origin import UNCOUNTED
from dpnb.ledger.sqlite_file import SqliteFile

MAX_ID = 2**63 - 1
MAX_STORED = 10_000
"""Rows that a query returns at once; SQLite limits the number of ids."""
ALL_COLUMNS = ", ".join(row.COLUMNS)
_OBSERVED = "WHERE table_version = ? AND node = ? AND query_key = ? AND sigma IS NOT NULL AND result IS NOT NULL"
_DECLARED = "WHERE node = ? AND kind = ? AND id < ? ORDER BY id DESC LIMIT 1"
_VERSIONS = UNCOUNTED, row.VERSION
_LENGTH = "OCTET_LENGTH" if sqlite3.sqlite_version_info >= (3, 43) else "LENGTH"  # which reads the whole text
_SIZE = " + ".join(f"{_LENGTH}(COALESCE({name}, ''))" for name in row.COLUMNS if name != "id")


INSERT = f"INSERT INTO events ({ALL_COLUMNS}) VALUES ({', '.join('?' * len(row.COLUMNS))})"  # noqa: S608  (our own text)


UPDATE = f"UPDATE events SET {' = ?, '.join((*row.ANSWER_COLUMNS, 'result_hash'))} = ? WHERE id = ?"  # noqa: S608


def end_of(chained: str, answer: Sequence[str | None]) -> tuple[str | None, ...]:
    """The `ANSWER_COLUMNS` of a row with the hash of its result."""
    return *answer, result_hash(chained, str(answer[0]), answer[-1])


class LedgerQueries:
    """The part of a ledger that reads the file and keeps nothing of it."""

    _file: SqliteFile
    path: str
    _declared: Declared | None = None  # when a session opened it
    _returns = False  # whether the next request of this session declares that again
    earlier: Earlier = ()
    """In a copy without the rows of kind ``version``, the earlier declarations, each with the last row about it."""

    @property
    def created(self) -> Declared:
        """What was declared when the file was created; the chain of hashes begins with it."""
        return Declared(
            dict(self._file.run("SELECT key, value FROM metadata")),
            dict(self._file.run("SELECT key, value FROM parameters")),
        )

    def content(self) -> bytes:
        """The content of the file, from which the same ledger can be opened."""
        return self._file.content()

    @property
    def declared(self) -> Declared:
        """What is declared now: when the file was created, or by the last row of kind ``version``."""
        return self.declared_before()

    def declared_at_last_request(self, version: str | None = None) -> Declared | None:
        """What was declared when the last request was charged; of one version of the table if it is given.

        The first lasts for ever, but for columns and limits; those of a version last too.  None without requests.
        """
        marks, of_version = ", ".join("?" * len(REQUESTS)), "" if version is None else "AND table_version = ? "
        last = self._file.run(
            f"SELECT id FROM events WHERE kind IN ({marks}) {of_version}ORDER BY id DESC LIMIT 1",  # noqa: S608
            *(*REQUESTS, *(() if version is None else (version,))),
        )
        return self.declared_before(*last[0]) if last else None

    def declaring(self, number: int = MAX_ID) -> int:
        """A number of the declaration that a row is about: that of its row, or 0 for when the file was created.

        In a copy with `earlier` declarations it is the last row about it, or 0 for what is declared now.
        """
        if self.earlier:
            return next((last for last, _ in self.earlier if number <= last), 0)
        found = self._file.run(f"SELECT id FROM events {_DECLARED}", *_VERSIONS, number)  # noqa: S608
        return int(found[0][0]) if found else 0

    def declaration(self, number: int) -> Declared:
        """The declaration with a number of `declaring`."""
        if not number:
            return self.created
        if self.earlier:
            return dict(self.earlier)[number]
        ((details,),) = self._file.run("SELECT details FROM events WHERE id = ?", number)
        return declared_in(number, details)

    def declared_before(self, number: int = MAX_ID) -> Declared:
        """What was declared when a row was written."""
        return self.declaration(self.declaring(number))

    @property
    def periods(self) -> list[DeclaredPeriod]:
        """What was declared one after the other."""
        if self.earlier:
            starts = [0, *(last for last, _ in self.earlier)]
            return [*map(DeclaredPeriod, starts, (*(declared for _, declared in self.earlier), self.created))]
        found = [DeclaredPeriod(0, self.created)]
        rows = self._file.run("SELECT id, details FROM events WHERE node = ? AND kind = ? ORDER BY id", *_VERSIONS)
        for number, details in rows:
            declared = declared_in(number, details)
            if extends(declared, found[-1].declared):
                found[-1] = DeclaredPeriod(found[-1].start, declared)
            else:
                found.append(DeclaredPeriod(number, declared))
        return found

    @property
    def short_name(self) -> str:
        """The name of the file, without its folder."""
        return "memory" if self.path == MEMORY else Path(self.path).name

    @property
    def valid(self) -> Declared:
        """What is declared for the next request of this session."""
        return self.opened if self._returns else self.declared

    @property
    def opened(self) -> Declared:
        """What was declared when this session opened the ledger; of a copy, what is declared."""
        return self.declared if self._declared is None else self._declared

    @property
    def is_divided(self) -> bool:
        """Whether some row is about how the budget is divided."""
        marks = ", ".join("?" * len(ABOUT_BUDGET))
        return bool(self._file.run(f"SELECT 1 FROM events WHERE kind IN ({marks}) LIMIT 1", *ABOUT_BUDGET))  # noqa: S608

    @property
    def requests_of_joins(self) -> dict[int, list[str]]:
        """The requests that are about a join of tables, each once, by the row that declares what they are about."""
        found: dict[int, list[str]] = {}
        declaring = "SELECT MAX(id) FROM events WHERE node = ? AND kind = ? AND id < request.id"
        for number, text in self._file.run(
            f"SELECT DISTINCT ({declaring}), request FROM events AS request WHERE request LIKE '%\"join\"%'",  # noqa: S608
            *_VERSIONS,
        ):
            found.setdefault(number or 0, []).append(text)
        return found

    @property
    def metadata(self) -> Mapping[str, str]:
        """The table, privacy unit, budget and filter that are declared now, and what the curator states."""
        stated = self.stated()
        return {**self.declared.metadata, **({} if stated is None else {STATED: stated})}

    def stated(self, count: int | None = None) -> str | None:
        """What the curator states about the table now, or stated first, second, ...; None if that is nothing.

        It is a JSON object with the words, and with the times at which they and all earlier ones were stated.
        """
        found = self._about(row.STATEMENT)[:count]
        if not found:
            return None
        with refuse_unreadable("what the curator states"):
            return json.dumps({**json.loads(found[-1][1]), "times": [time for time, _ in found]}, sort_keys=True)

    def details_of(self, kind: str) -> list[dict[str, Any]]:
        """The details of all rows about the table of a kind, in order."""
        with refuse_unreadable(f"a row of kind {kind!r}"):
            return [dict(json.loads(details)) for _, details in self._about(kind)]

    def _about(self, kind: str) -> list[tuple[str, str]]:
        """Times and details of all rows about the table of a kind, in order."""
        clause = "WHERE node = ? AND kind = ? ORDER BY id"
        return self._file.run(f"SELECT time, details FROM events {clause}", UNCOUNTED, kind)  # noqa: S608

    @property
    def is_redacted(self) -> bool:
        """Whether this is a copy without answers and names, for somebody outside."""
        return any(details.get("key") is None for details in self.details_of(row.REDACTION))

    def refuse_redacted(self) -> None:
        """Refuse to charge anything on such a copy."""
        if self.is_redacted:
            raise LedgerError(
                f"ledger {self.path!r}: must be the whole ledger; it is a redacted copy, on which nothing can be "
                "charged; give the ledger that it was made from"
            )

    @property
    def parameters(self) -> Mapping[str, str]:
        """Numbers that were fixed by these."""
        return self.declared.parameters

    def times(self, after: int = 0) -> dict[int, str]:
        """The times of the rows with an id larger than `after` by their ids."""
        return dict(self._file.run("SELECT id, time FROM events WHERE id > ? ORDER BY id", after))

    @property
    def last(self) -> ChainHead:
        """The number and the hash of the last row."""
        ((number, chained),) = self._file.run("SELECT id, hash FROM head")
        return ChainHead(int(number), str(chained))

    @property
    def count(self) -> int:
        """The number of rows."""
        return self.last.number

    @property
    def head(self) -> str:
        """The hash of the last row, which depends on all rows."""
        return self.last.hash

    def has(self, head: ChainHead) -> bool:
        """Whether the row with this number has this hash; true before the first row."""
        return not head.number or self._file.run("SELECT hash FROM events WHERE id = ?", head.number) == [(head.hash,)]

    def foreign_changes(self) -> int:
        """A number that changes when another connection, of this or another process, has changed the file."""
        ((version,),) = self._file.run("PRAGMA data_version")
        return int(version)

    def by_key(self, node: str, table_version: str, key: str) -> Charge | None:
        """The row of a request in a node, for a version of the table; None if the request was never made."""
        rows = self._select("WHERE node = ? AND table_version = ? AND request_key = ?", node, table_version, key)
        return rows[0] if rows else None

    def by_request_id(self, node: str, request_id: str) -> Charge | None:
        """The first row in a node that a request at a service wrote, by the id that its client chose."""
        rows = self._select("WHERE node = ? AND request_id = ?", node, request_id)
        return rows[0] if rows else None

    def observations(self, table_version: str, node: str, query_key: str) -> list[Charge]:
        """Rows with a released measurement of a query, in order."""
        return self._select(f"{_OBSERVED} ORDER BY id", *(table_version, node, query_key))

    def count_observations(self, table_version: str, node: str, query_key: str) -> int:
        """The number of rows of `observations`, whose measurements are not read."""
        ((number,),) = self._file.run(
            f"SELECT COUNT(*) FROM events {_OBSERVED}",  # noqa: S608  (our own text)
            *(table_version, node, query_key),
        )
        return int(number)

    def reserved(self) -> list[int]:
        """The ids of the charges that are neither answered nor recorded as failed, in order."""
        return [number for (number,) in self._file.run("SELECT id FROM events WHERE status = 'reserved' ORDER BY id")]

    def unanswered(self, table_version: str, node: str, query_key: str) -> list[Charge]:
        """Rows that were charged for a measurement of a query but have none, in order."""
        return self._select(
            "WHERE table_version = ? AND node = ? AND query_key = ? AND sigma IS NOT NULL AND result IS NULL "
            "ORDER BY id",
            *(table_version, node, query_key),
        )

    def of_node(self, node: str, after: int = 0) -> list[Charge]:
        """Rows of one node with an id larger than `after`, in order."""
        return self._select("WHERE node = ? AND id > ? ORDER BY id", node, after)

    def by_id(self, ids: tuple[int, ...]) -> list[Charge]:
        """The rows with these ids, in order."""
        marks = ", ".join("?" * len(ids))
        return self._select(f"WHERE id IN ({marks}) ORDER BY id", *ids)

    def _select(self, clause: str, *arguments: object) -> list[Charge]:
        rows = self._file.run(f"SELECT {ALL_COLUMNS} FROM events {clause}", *arguments)  # noqa: S608  (our own text)
        return [charge_of(dict(zip(row.COLUMNS, values, strict=True))) for values in rows]

    def stored(self, ids: Sequence[int], columns: tuple[str, ...] = row.COLUMNS) -> list[dict[str, str | int | None]]:
        """The columns of the rows with these ids, at most `MAX_STORED`, as they are stored, in order."""
        clause = f"WHERE id IN ({', '.join('?' * len(ids))}) ORDER BY id"
        rows = self._file.run(f"SELECT {', '.join(columns)} FROM events {clause}", *ids)  # noqa: S608
        return [dict(zip(columns, values, strict=True)) for values in rows]

    def sizes(self, ids: Sequence[int], *, finished: bool = False) -> dict[int, int]:
        """The bytes of the rows with these ids, at most `MAX_STORED`; the rows themselves are not kept in memory.

        If `finished`, only of those that are no longer reserved.
        """
        clause = f"WHERE id IN ({', '.join('?' * len(ids))}){' AND status != ?' if finished else ''}"
        status = ("reserved",) if finished else ()
        return dict(self._file.run(f"SELECT id, {_SIZE} FROM events {clause}", *ids, *status))  # noqa: S608

    def stored_bytes(self, after: int = 0) -> dict[tuple[str, str], int]:
        """The bytes of the rows with an id larger than `after`, by who made the requests and the kind of row."""
        clause = "WHERE id > ? AND actor IS NOT NULL GROUP BY actor, kind"
        rows = self._file.run(f"SELECT actor, kind, SUM({_SIZE}) FROM events {clause}", after)  # noqa: S608
        return {(actor, kind): size for actor, kind, size in rows}

    def words(self, ids: Sequence[int]) -> list[tuple[int, str, str, str | None]]:
        """Id, time, status and stored words of the rows with these ids, at most `MAX_STORED`, in order."""
        clause = f"WHERE id IN ({', '.join('?' * len(ids))}) ORDER BY id"
        return self._file.run(f"SELECT id, time, status, words FROM events {clause}", *ids)  # noqa: S608

    def released_among(self, ids: Sequence[int]) -> set[int]:
        """Those of the rows with these ids, at most `MAX_STORED`, that are released."""
        marks = ", ".join("?" * len(ids))
        return {
            number
            for (number,) in self._file.run(
                f"SELECT id FROM events WHERE id IN ({marks}) AND status = 'released'",  # noqa: S608
                *ids,
            )
        }


class StoredLedger(LedgerQueries):
    """A ledger before a session opens it: its chain is not verified, so that what it says is only provisional."""

    def __init__(self, file: SqliteFile) -> None:
        self._file, self.path = file, file.path


@contextmanager
def stored_ledger(path: str) -> Iterator[StoredLedger | None]:
    """The ledger in a file; None if there is none yet."""
    if path == MEMORY or not Path(path).exists():
        yield None
        return
    file = SqliteFile(path, TABLES, FORMAT)
    try:
        yield None if file.is_new() else StoredLedger(file)
    finally:
        file.close()


DeclarationChange = Callable[[LedgerQueries, Declared], Declared]
"""What a ledger declares from now on if a session declares something; refuses what it cannot."""


def refuse_other(ledger: LedgerQueries, wanted: Declared) -> Declared:
    """Refuse other metadata; the parameters are those of the ledger."""
    known = ledger.declared.metadata
    for name in sorted({*known, *wanted.metadata}):
        if known.get(name) != wanted.metadata.get(name):
            raise LedgerError(f"ledger {ledger.path!r}: was created for another {name}; give another file")
    return ledger.declared
