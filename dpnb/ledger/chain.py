"""Verifies the hash chain, from the metadata to the last row, as it grows; `dpnb.ledger.charge` makes its hashes."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import NamedTuple, NoReturn

from dpnb.errors import LedgerError
from dpnb.ledger import charge as row
from dpnb.ledger.charge import ChargeSummary
from dpnb.ledger.declared import before_added
from dpnb.ledger.sqlite_file import SqliteFile

_COLUMNS = ", ".join(row.COLUMNS)
_hashes = itemgetter(*map(row.COLUMNS.index, ("hash", *row.ANSWER_COLUMNS, "result_hash")))
_event = itemgetter(*map(row.COLUMNS.index, ("kind", "node", *row.ORIGIN_COLUMNS)))


class ChainHead(NamedTuple):
    """A row's number and hash; before the first row, 0 and the hash of metadata and parameters."""

    number: int
    hash: str


def chain_start(path: str, metadata: Mapping[str, str], parameters: Mapping[str, str]) -> ChainHead:
    """The start of the chain.

    The columns that were added are no part of it, so that a copy which an analyst follows stays one.
    """
    for texts in (metadata, parameters):
        if not all(isinstance(text, str) for item in texts.items() for text in item):
            _altered(path, "the metadata is not what was written")
    return ChainHead(0, row.digest([before_added(metadata), parameters]))


def verify_chain(
    file: SqliteFile,
    since: ChainHead,
    summaries: list[ChargeSummary] | None = None,
    *,
    may_lack_answers: bool = False,
) -> ChainHead:
    """Verify the chain from the last verified row to the end.  Call in a transaction, since other kernels write.

    This ensures that every charge follows all earlier ones: a file whose content was replaced, truncated or restored
    from a copy while it was in use is refused.

    `summaries` has those of the rows so far; those of the verified rows are added once all are verified, so that they
    need not be read again.  With `may_lack_answers`, answers may have been taken out, with their words and salts.
    """
    number, previous = since
    last = file.run("SELECT id, hash FROM head")
    if number and last == [since]:
        return since
    if number and file.run("SELECT hash FROM events WHERE id = ?", number) != [(previous,)]:
        _altered(file.path, f"row {number} was removed or replaced")
    clause, arguments = ("WHERE id > ?", (number,)) if number else ("", ())
    found = []
    for values in file.each(f"SELECT {_COLUMNS} FROM events {clause} ORDER BY id", *arguments):  # noqa: S608
        number += 1
        if not row.is_row(values):
            _altered(file.path, f"row {number} is not what was written")
        previous = row.hash_after(previous, values)
        chained, status, result, words, *seal, hashed = _hashes(values)
        expected = number, previous, row.result_hash(previous, status, seal[1])
        is_out = may_lack_answers and (result, words, seal[0]) == (None, None, None)
        if (values[0], chained, hashed) != expected or not (is_out or row.sealed(result, words, seal[0]) == (*seal,)):
            _altered(file.path, f"row {number} is not what was written")
        row.refuse_unknown(number, *_event(values), path=file.path)
        if summaries is not None:
            found.append(row.summary_of_row(values))
    if last != [(number, previous)]:
        _altered(file.path, "rows were removed, or the metadata is not what was written")
    if summaries is not None:
        summaries += found
    return ChainHead(number, previous)


def _altered(path: str, problem: str) -> NoReturn:
    raise LedgerError(
        f"ledger {path!r}: must be as dpnb left it; {problem}; restore it from a copy that has every charge"
    )
