"""A redacted ledger, for somebody outside: plans and costs, without answers, names of people and digests of files.

It is a ledger with as many rows as the whole one, and has a chain of hashes of its own: what is hidden in a row is
replaced before the row is hashed.  An answer is replaced by its salted digest, which the whole ledger holds; a name, a
reason or a digest of files by a keyed digest (HMAC with SHA-256).  Neither salts nor the key, of 256 random bits, are
in the redacted ledger, so nobody can find a value by trying all that it could be.  The key is in a row of the whole
ledger, written when it is first redacted.  So redacting again gives the same rows and hashes with later ones after
them: a head that somebody has noted stays in the chain.

The hashes of the whole ledger are left out: a row's is no secret for who can guess a name in it.

What follows from answers stays: costs, plans that quote them, and the end of a scan above a threshold, which is its
last positive answer.  All of it is covered by the guarantee, as the answers are.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from dpnb._backends.protocol import FIELDS_AS_TEXTS
from dpnb._core.accountant.budget_request import BudgetRequest
from dpnb._core.accountant.grant import SETTINGS_ACTOR
from dpnb._request import RequestBudget, request_from
from dpnb.errors import InvalidValueError, LedgerError
from dpnb.ledger import Ledger, refuse_unreadable
from dpnb.ledger import charge as row
from dpnb.ledger.queries import stored_ledger
from dpnb.ledger.replica import RowsCopy

KEY = "key"
"""The one entry of a row of kind ``redaction``; null in a redacted ledger."""

BYTES = 32
"""Of the key."""

CHARACTERS = 16
"""Hexadecimal digits of a keyed digest."""

ABSENT = ("request_id", "request_digest", "cell_id", "result", "words", "salt")
"""Columns that are left out of each row."""

AS_THEY_ARE = (row.VERSION, row.STATEMENT, row.CLOSE, *row.QUERIES)
"""Kinds of rows whose details, if they have any, say what the curator declared or the analyst planned."""

AMOUNTS = {
    *("grant", "mode", "ceiling", "cap", "parameters", "taken_from"),
    *("act", "amount", "until", "request", "row", "known"),
}
"""Entries of the details of grants and acts that are shown; others are hidden, or refused if they are unknown here."""


class RedactedCopy(RowsCopy):
    """The first rows of a ledger (by default all), redacted with a key, in memory."""

    _not_copied = "it is a copy of a ledger for one purpose; make another one"

    def __init__(self, ledger: Ledger, key: bytes, rows: int | None = None) -> None:
        self._key, self._digests = key, dict[int, str]()  # of the redacted requests for budget, by their rows
        super().__init__(ledger, rows)

    def save(self, path: str) -> None:
        """Write a new file, which never held anything else."""
        self._file.run("VACUUM INTO ?", path)

    def _append(self, rows: list[dict[str, Any]]) -> None:
        previous, redacted = self.head, []
        for stored in rows:
            with refuse_unreadable(f"row {stored['id']}"):
                one = {**stored, **dict.fromkeys(ABSENT), "actor": self._person(stored["actor"]), **self._own(stored)}
            one["hash"] = previous = row.chained_hash(previous, one)
            one["result_hash"] = row.result_hash(previous, one["status"], one["answer_digest"])
            if one["kind"] == row.BUDGET_REQUEST:
                summary = row.summary_of_row(tuple(one[name] for name in row.COLUMNS))
                self._digests[one["id"]] = BudgetRequest.from_row(summary, None).digest
            redacted.append(one)
        super()._append(redacted)

    # --- what is hidden -----------------------------------------------------------------------------------------

    def _own(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        """The columns that are other ones in a row of this kind."""
        kind, number = stored["kind"], stored["id"]
        if kind in AS_THEY_ARE:
            return {}
        details = json.loads(stored["details"])
        if kind == row.REDACTION:
            return {"details": json.dumps({KEY: None})}
        if kind == row.LAUNCH:
            hidden = {
                name: self._hidden(one, number) if name == "noise_token" else one for name, one in details.items()
            }
            return {"details": json.dumps(hidden)}
        if kind == row.TABLE_FILES:
            return {"details": json.dumps(self._hidden(details, number))}
        if kind == row.BUDGET_REQUEST:
            return self._request(stored, details)
        if kind not in (row.GRANT, row.ACT):
            raise LedgerError(
                f"ledger {self.path!r}: row {number} cannot be redacted, since its kind is not known here"
            )
        found = {name: self._entry(name, one, number, details) for name, one in details.items()}
        changed = {"details": json.dumps(found)}
        if kind == row.GRANT:
            changed |= {"query_key": found["name"], "request_key": self._digest("key", stored["request_key"])}
        return changed

    def _entry(self, name: str, value: Any, number: int, details: Mapping[str, Any]) -> Any:
        if name in AMOUNTS:
            return value
        if name == "name":
            return self._person(value, details["grant"])
        if name == "why":
            return self._hidden(value, number)
        if name == "digest":  # of what the curator was shown
            return self._digests[details["request"]]
        raise LedgerError(f"ledger {self.path!r}: row {number} cannot be redacted, since {name!r} is not known here")

    def _request(self, stored: Mapping[str, Any], details: dict[str, Any]) -> dict[str, Any]:
        """A request for budget without its reason, and without the errors, which may follow from answers."""
        request, number = request_from(stored["request"]), stored["id"]
        if not isinstance(request, RequestBudget):
            raise TypeError(type(request).__name__)
        queries = [{**one, "error": self._hidden(one["error"], number)} for one in details["queries"]]
        return {
            "request": msgspec.structs.replace(request, why=self._hidden(request.why, number)).text,
            "details": json.dumps({**details, "queries": queries}),
        }

    def _hidden(self, value: Any, number: int) -> Any:
        """A value whose texts are replaced by digests, which differ from row to row."""
        if isinstance(value, dict):
            return {name: self._hidden(one, number) for name, one in value.items()}
        if isinstance(value, list):
            return [self._hidden(one, number) for one in value]
        if isinstance(value, str) and value not in ("", FIELDS_AS_TEXTS):
            return f"redacted-{self._digest('text', str(number), value)}"
        return value

    def _person(self, name: str | None, level: str = "analyst") -> str | None:
        """The word for a person or a project, which is the same in all rows."""
        if name is None or name == SETTINGS_ACTOR:
            return name
        return f"{'project' if level == 'project' else 'person'}-{self._digest(name)}"

    def _digest(self, *texts: str) -> str:
        return hmac.new(self._key, json.dumps(texts).encode(), hashlib.sha256).hexdigest()[:CHARACTERS]


# --- the key, and the command -----------------------------------------------------------------------------------------


def redacted(ledger: Ledger) -> RedactedCopy | None:
    """The redacted copy of a ledger that has a key; None if it has none."""
    details = ledger.details_of(row.REDACTION)
    if not details:
        return None
    with refuse_unreadable("the key of the redacted ledger"):
        key = bytes.fromhex(details[0][KEY])
    return RedactedCopy(ledger, key)


def redact(path: str, output: str) -> str:
    """Write the redacted ledger, and the key into the whole one if it has none yet; what the command prints."""
    if Path(output).exists():
        raise InvalidValueError(f"OUTPUT: must be a file that does not exist yet; {output!r} does; give another name")
    _write_key(path)
    with closing(Ledger.read_only_copy(path)) as whole:
        copy = redacted(whole)
        if copy is None:  # never: it was just written
            raise InvalidValueError(f"ledger {path!r}: has no key")
        with closing(copy):
            try:
                copy.save(output)
            except LedgerError:
                raise InvalidValueError(f"OUTPUT: must be a file that can be written; got {output!r}") from None
            n, head = copy.count, copy.head
    rows = f"{n:,} row{'s' if n != 1 else ''}"
    return (
        f"{output}: {rows} without answers, names of people and digests of files; head {head}\n"
        f"Write the statement that belongs to it by: python -m dpnb report {output} --output statement.html"
    )


def _write_key(path: str) -> None:
    with closing(Ledger.read_only_copy(path)) as known:
        if known.is_redacted:
            raise InvalidValueError(f"ledger {path!r}: is redacted already; give the whole one")
        if known.details_of(row.REDACTION):
            return
    with stored_ledger(path) as stored:
        if stored is None:  # never: it was just read
            raise InvalidValueError(f"ledger {path!r}: must exist")
        declared = stored.declared
    with closing(Ledger(path, *declared)) as ledger, ledger.transaction():
        if not ledger.details_of(row.REDACTION):
            ledger.note(row.REDACTION, "", {KEY: secrets.token_hex(BYTES)})
