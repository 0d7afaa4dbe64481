"""The chain of hashes from the promise to the last row, verified as it grows."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import NamedTuple, NoReturn

from dpnb.errors import LedgerError
from dpnb.ledger import charge as row
from dpnb.ledger.sqlite_file import SqliteFile

_COLUMNS = ", ".join(row.COLUMNS)
_reserved_for_later = itemgetter(*row.RESERVED_FOR_LATER)


class ChainHead(NamedTuple):
    """A row's number and hash; before the first row, 0 and the promise's hash."""

    number: int
    hash: str


def chain_start(path: str, promise: Mapping[str, str], settings: Mapping[str, str]) -> ChainHead:
    """Where the chain begins.

    Raises
    ------
    LedgerError
        The promise or the settings hold something other than texts.
    """
    for texts in (promise, settings):
        if not all(isinstance(text, str) for item in texts.items() for text in item):
            _altered(path, "the promise is not what was written")
    return ChainHead(0, row.digest([promise, settings]))


def verify_chain(file: SqliteFile, since: ChainHead) -> ChainHead:
    """Verify the chain from where it was left to the last row.  Call in a transaction, since other kernels write.

    So every charge follows all that came before it: a file whose content was replaced, cut off or restored from a copy
    while it was in use is refused.

    Raises
    ------
    LedgerError
        The chain does not lead from there to the last row.
    """
    number, previous = since
    last = file.run("SELECT id, hash FROM head")
    if number and last == [since]:
        return since
    if number and file.run("SELECT hash FROM events WHERE id = ?", number) != [(previous,)]:
        _altered(file.path, f"row {number} is gone, or is another one")
    clause, arguments = ("WHERE id > ?", (number,)) if number else ("", ())
    for values in file.each(f"SELECT {_COLUMNS} FROM events {clause} ORDER BY id", *arguments):  # noqa: S608
        number += 1
        stored = row.row_values(values)
        if stored is None:
            _altered(file.path, f"row {number} is not what was written")
        previous = row.chained_hash(previous, stored)
        result = row.result_hash(previous, stored["status"], stored["result"])
        if (stored["id"], stored["hash"], stored["result_hash"]) != (number, previous, result):
            _altered(file.path, f"row {number} is not what was written")
        row.refuse_unknown(number, stored["kind"], stored["node"], *_reserved_for_later(stored), path=file.path)
    if last != [(number, previous)]:
        _altered(file.path, "rows were removed, or the promise is not what was written")
    return ChainHead(number, previous)


def _altered(path: str, what: str) -> NoReturn:
    raise LedgerError(f"ledger {path!r}: must be as dpnb left it; {what}; restore it from a copy that has every charge")
