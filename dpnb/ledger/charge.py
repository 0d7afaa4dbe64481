"""One row of the ledger: its content, how it is stored, and the hash that chains it to the previous row.

The chain detects an edited, inserted or missing row; it does not protect against somebody who recomputes it.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from sys import intern
from typing import Annotated, Any

import msgspec

from dpnb.accounting.exact import from_text
from dpnb.accounting.losses import GDP, Loss, PureGDP, loss_from_json
from dpnb.accounting.losses.gaussian import is_gaussian
from dpnb.errors import InvalidValueError, LedgerError, printable
from dpnb.ledger.connection import refuse_unreadable
from dpnb.ledger.origin import UNCOUNTED, RequestOrigin, is_node
from dpnb.mechanisms.measurement import Measurement

RELEASE, COMPARISON, SELECTION, LAUNCH, CLOSE = "release", "comparison", "selection", "launch", "close"
GRANT, ACT, BUDGET_REQUEST = "grant", "act", "budget_request"
TABLE_FILES, VERSION = "table_files", "version"
STATEMENT, REDACTION = "statement", "redaction"
DECLARED = VERSION, STATEMENT, REDACTION
"""Kinds of events about what is declared and stated, which say nothing of a version's rows."""

ABOUT_TABLE = TABLE_FILES, *DECLARED
"""Kinds of events about the table, which charge nothing and which no analyst sees."""

KINDS = RELEASE, COMPARISON, SELECTION, LAUNCH, CLOSE, GRANT, ACT, BUDGET_REQUEST, *ABOUT_TABLE
"""Kinds of events."""

QUERIES = RELEASE, COMPARISON, SELECTION
"""Kinds of events that have a plan."""

REQUESTS = *QUERIES, LAUNCH
"""Kinds of events that may charge, and so fix what their version of the table declares."""

ABOUT_BUDGET = GRANT, ACT, BUDGET_REQUEST
"""Kinds of events about how the budget is divided, which charge nothing."""

TIMED = ACT, BUDGET_REQUEST
"""Kinds of events whose time counts for later ones."""

RESERVED_COLUMNS = (
    *("id", "time", "kind", "request_key", "node", "actor", "request_id", "request_digest", "table_version"),
    *("query_key", "request", "total_mu_squared", "loss", "charged_mu_squared", "charged_epsilon"),
    *("sigma", "tau", "observations", "cell_id", "details"),
)
"""Written with the charge and never changed."""

ORIGIN_COLUMNS = ("actor", "request_id", "request_digest")
"""Who made the request at a service, and its id; NULL in a local session.  Versions without a service refuse rows that
have a value here."""

SUMMARY_NAMES = (
    *("id", "kind", "node", "table_version", "loss", "charged_mu_squared", "charged_epsilon"),
    *(*ORIGIN_COLUMNS, "cell_id", "details", "request", "time"),
)
SUMMARY_COLUMNS = ", ".join(SUMMARY_NAMES).replace("request,", "CASE WHEN details IS NOT NULL THEN request END,")
"""The request of a query, which may be long, is not kept in memory."""

ANSWER_COLUMNS = ("status", "result", "words", "salt", "answer_digest")
"""Written when a row is answered, or with the charge of a row that needs no answer.

The digest is that of the salt, the result and its words.  The hash of the answer depends on the digest alone, so a copy
without answers can be verified; without the salt, a "yes" or a small count could be guessed from its digest."""

COLUMNS = (*RESERVED_COLUMNS, "hash", *ANSWER_COLUMNS, "result_hash")

CHARGED_COLUMNS = ("charged_mu_squared", "charged_epsilon")
MAY_BE_EMPTY = {*ORIGIN_COLUMNS, *CHARGED_COLUMNS, "sigma", "tau", "cell_id", "details", *ANSWER_COLUMNS[1:]}
_reserved = itemgetter(*RESERVED_COLUMNS)
columns_of = itemgetter(*COLUMNS)
"""The columns of a row in order."""

_summary = itemgetter(*map(COLUMNS.index, SUMMARY_NAMES))
STATUS, TIME_OF_ROW = COLUMNS.index("status"), COLUMNS.index("time")
IN_SUMMARY = SUMMARY_NAMES.index
_json_of = json.encoder.encode_basestring_ascii
STATUSES = ("reserved", "released", "failed")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)

TABLE = """
CREATE TABLE events (
    id INTEGER PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL, request_key TEXT NOT NULL,
    node TEXT NOT NULL, actor TEXT, request_id TEXT, request_digest TEXT, table_version TEXT NOT NULL,
    query_key TEXT NOT NULL, request TEXT NOT NULL, total_mu_squared TEXT NOT NULL,
    loss TEXT NOT NULL, charged_mu_squared TEXT, charged_epsilon TEXT, sigma TEXT, tau TEXT,
    observations TEXT NOT NULL, cell_id TEXT, details TEXT, hash TEXT NOT NULL, status TEXT NOT NULL, result TEXT,
    words TEXT, salt TEXT, answer_digest TEXT, result_hash TEXT NOT NULL
);
CREATE INDEX events_by_query ON events (table_version, node, query_key);
CREATE UNIQUE INDEX events_by_key ON events (node, table_version, request_key);
CREATE UNIQUE INDEX events_by_request ON events (node, request_id) WHERE request_id IS NOT NULL;
"""


@dataclass(frozen=True)
class Charge:
    """One row of the ledger; `id` counts them from 1, in order."""

    id: int
    time: str  # of the reservation; UTC, ISO 8601
    kind: str  # one of `KINDS`
    request_key: str  # identity of the request, with node and version of the table
    node: str  # session, sub-session, part or other mechanism of the request: see `dpnb.ledger.origin`
    table_version: str
    query_key: str  # what is measured, equal for equal queries however they were written; for a launch, its name
    request: str  # JSON of a `dpnb._request.Request`; empty for a row that no analyst requested
    total_loss: GDP  # of the query with this answer, including earlier observations
    loss: Loss  # what this row costs its node; GDP for everything that is measured with Gaussian noise
    sigma: float | None  # scale of the fresh noise, in grid units; None if nothing was measured
    tau: float | None  # parameter of the confidence sequence, fixed by the query's first observation
    observations: tuple[int, ...]  # ids of the rows whose measurements the answer combines, including this one
    status: str  # reserved, released or failed
    measurement: Measurement | None  # what was released, if it is a measurement; otherwise `result`
    group_keys: tuple[tuple[Any, ...], ...] | None = None  # of the released values, for partition selection
    cell_id: str | None = None  # the notebook cell that first made the request; None outside a notebook
    launch: Mapping[str, Any] | None = None  # details of an event other than a query; None for a query
    result: Mapping[str, Any] | None = None
    charged: PureGDP | None = None
    """What a GDP filter was charged, if that is not the loss: for a pure-DP launch, in the columns `CHARGED_COLUMNS`.
    It depends on the budget that was left, so it is never computed again."""
    origin: RequestOrigin | None = None  # who made the request at a service; None in a local session

    @property
    def gdp(self) -> GDP:
        """The loss of a measurement with Gaussian noise; a `LedgerError` for any other kind of loss."""
        if not is_gaussian(self.loss):
            raise LedgerError(f"ledger: row {self.id} must have the loss of Gaussian noise; got {self.loss!r}")
        return self.loss


class ChargeSummary(msgspec.Struct, frozen=True, gc=False):
    """The part of a row that counts for budgets and never changes once written; see `Charge` for the fields.

    The garbage collector does not visit it: a session keeps one for each row, and none refers to another.  The time is
    None for rows of other kinds than `TIMED`, of which a ledger has many.
    """

    id: int
    kind: str
    node: str
    table_version: str
    loss: Loss
    cell_id: str | None
    launch: Mapping[str, Any] | None
    request: str | None = None  # None for a query
    charged: PureGDP | None = None
    origin: RequestOrigin | None = None
    time: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it has a loss of Gaussian noise without a delta, and is no launch, act or request for budget."""
        return self.launch is None and is_gaussian(self.loss) and not self.loss.delta


Words = tuple[str, str | None, float | None, float | None, float | None, str | None]
"""The request; its answer, if there is one: a single number with its interval, otherwise how many groups and values it
has; a single number and the ends of its interval; and the half-widths of the intervals.

A plain tuple of atoms, which the garbage collector does not visit: a log has very many.
"""

_SummaryFields = tuple[str, str, str, Loss, str | None, Mapping[str, Any] | None, PureGDP | None, RequestOrigin | None]


def _charged(loss: Loss, mu_squared: str | None, epsilon: str | None) -> PureGDP | None:
    """What a GDP filter was charged; None if that is the loss."""
    if mu_squared is None and epsilon is None:
        return None
    return PureGDP.of(from_text(mu_squared or "0"), loss.delta, from_text(epsilon or "0"))


def summary_of(stored: tuple[Any, ...]) -> ChargeSummary:
    """The summary of a row, from its `SUMMARY_COLUMNS`; equal strings are interned."""
    number, kind, node, *_ = stored
    refuse_unknown(number, kind, node, *stored[7:10])
    return _summary_of(stored)


def summary_of_row(values: tuple[Any, ...]) -> ChargeSummary:
    """The summary of a row that `refuse_unknown` has not refused, from its `COLUMNS`."""
    found = _summary(values)
    return _summary_of(found if found[IN_SUMMARY("details")] is not None else (*found[:-2], None, found[-1]))


def _summary_of(stored: tuple[Any, ...]) -> ChargeSummary:
    number, *repeated, request, time = stored
    with refuse_unreadable(f"row {number}"):
        kind, node, version, loss, cell, launch, charged, origin = _summary_fields(*repeated)
    time = time if kind in TIMED else None
    return ChargeSummary(number, kind, node, version, loss, cell, launch, request, charged, origin, time)


@lru_cache(maxsize=1024)
def _summary_fields(
    kind: str,
    node: str,
    version: str,
    loss: str,
    charged_mu_squared: str | None,
    charged_epsilon: str | None,
    actor: str | None,
    request_id: str | None,
    request_digest: str | None,
    cell: str | None,
    details: str | None,
) -> _SummaryFields:
    """The fields of a summary between id and time, which are equal in most rows."""
    known = _loss_of(loss)
    return (
        intern(kind),
        intern(node),
        intern(version),
        known,
        None if cell is None else intern(cell),
        _details(kind, details),
        _charged(known, charged_mu_squared, charged_epsilon),
        _origin(actor, request_id, request_digest),
    )


def is_row(values: tuple[Any, ...]) -> bool:
    """Whether the `COLUMNS` of a row have the types that a ledger writes, which SQLite does not enforce."""
    types = tuple(map(type, values))
    return _are_written(types) and values[STATUS] in STATUSES and TIME.fullmatch(values[TIME_OF_ROW]) is not None


@lru_cache(maxsize=256)
def _are_written(types: tuple[type, ...]) -> bool:
    """Whether the columns of a row can have these types."""
    return all(
        one is (int if name == "id" else str) or (one is type(None) and name in MAY_BE_EMPTY)
        for name, one in zip(COLUMNS, types, strict=True)
    )


def refuse_unknown(number: int, kind: str, node: str, *origin: str | None, path: str = "") -> None:
    """Refuse an event that only a later version of dpnb can have written.

    Its kind is unknown, the losses of its node would not be counted, or `origin`, the values of `ORIGIN_COLUMNS`, has
    another form.
    """
    problem = _unknown(kind, node, *origin)
    if problem is not None:
        raise LedgerError(
            f"ledger{f' {path!r}' if path else ''}: row {number} must be one that this version of dpnb understands; it "
            f"has {problem}; use the version that wrote it"
        )


@lru_cache(maxsize=1024)
def _unknown(kind: str, node: str, *origin: str | None) -> str | None:
    """What of an event is unknown; None if everything is known."""
    if kind not in KINDS:
        return "another kind of event"
    if not (node == UNCOUNTED if kind in ABOUT_TABLE else is_node(node)):
        return "another kind of node"
    return None if _is_origin(*origin) else f"other values in {', '.join(ORIGIN_COLUMNS)}"


def charge_of(stored: Mapping[str, Any]) -> Charge:
    """The charge of a row, from its columns."""
    with refuse_unreadable(f"row {stored['id']}"):
        content = None if stored["result"] is None else _mapping(stored["result"])
        loss = _loss_of(stored["loss"])
        compared = stored["kind"] in (COMPARISON, SELECTION)
        keys = None if compared or content is None else content.get("group_keys")
        return Charge(
            id=stored["id"],
            time=stored["time"],
            kind=stored["kind"],
            request_key=stored["request_key"],
            node=stored["node"],
            table_version=stored["table_version"],
            query_key=stored["query_key"],
            request=stored["request"],
            total_loss=_total_loss_of(stored["total_mu_squared"]),
            loss=loss,
            sigma=None if stored["sigma"] is None else float.fromhex(stored["sigma"]),
            tau=None if stored["tau"] is None else float.fromhex(stored["tau"]),
            observations=_OBSERVATIONS.decode(stored["observations"]),
            status=stored["status"],
            measurement=None if compared or content is None else Measurement.from_json(content),
            group_keys=None if keys is None else tuple(tuple(key) for key in keys),
            cell_id=stored["cell_id"],
            launch=_details(stored["kind"], stored["details"]),
            result=content if compared else None,
            charged=_charged(loss, stored["charged_mu_squared"], stored["charged_epsilon"]),
            origin=_origin(stored["actor"], stored["request_id"], stored["request_digest"]),
        )


_OBSERVATIONS = msgspec.json.Decoder(tuple[Annotated[int, msgspec.Meta(gt=0)], ...])


@lru_cache(maxsize=1024)
def _loss_of(text: str) -> Loss:
    return loss_from_json(json.loads(text))


@lru_cache(maxsize=1024)
def _total_loss_of(text: str) -> GDP:
    return GDP.from_mu_squared(from_text(text))


def _origin(actor: str | None, request_id: str | None, request_digest: str | None) -> RequestOrigin | None:
    return None if actor is None else RequestOrigin(actor, request_id, request_digest)


def _is_origin(actor: str | None = None, request_id: str | None = None, request_digest: str | None = None) -> bool:
    if actor is None:
        return request_id is None and request_digest is None
    try:
        RequestOrigin(actor, request_id, request_digest)
    except InvalidValueError:
        return False
    return True


def _details(kind: str, details: str | None) -> dict[str, Any] | None:
    """The details of an event; None for a query, which has a plan instead."""
    if (details is None) != (kind in QUERIES):
        raise ValueError
    return None if details is None else _mapping(details)


def _mapping(text: str) -> dict[str, Any]:
    content = json.loads(text)
    if not isinstance(content, dict):
        raise TypeError(type(content).__name__)
    return content


def unique_key() -> str:
    """The key of a row that no request finds, such as that of an act."""
    return secrets.token_hex(32)


def digest(content: object) -> str:
    """SHA-256 of a JSON-like value, in hexadecimal."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=repr).encode()).hexdigest()


def chained_hash(previous: str, stored: Mapping[str, Any]) -> str:
    """Hash of the reserved columns, chained to the hash of the previous row."""
    return hash_after(previous, _reserved(stored))


def hash_after(previous: str, values: tuple[Any, ...]) -> str:
    """`chained_hash` of a row from its columns in order, of which the first are the reserved ones."""
    number, *texts = values[: len(RESERVED_COLUMNS)]
    return hashlib.sha256(f'["{previous}", {number}, {_json_list(texts)}]'.encode()).hexdigest()


def sealed(result: str | None, words: str | None, salt: str | None = None) -> tuple[str | None, str | None]:
    """The salt and the digest of a result and its words; None of no result.  The salt is a new one by default."""
    if result is None and words is None:
        return None, None
    salt = secrets.token_hex(16) if salt is None else salt
    return salt, hashlib.sha256(f"[{_json_list((salt, result, words))}]".encode()).hexdigest()


def result_hash(chained: str, status: str, answer_digest: str | None) -> str:
    """Hash of the status of a charge and of the digest of its answer."""
    return hashlib.sha256(f"[{_json_list((chained, status, answer_digest))}]".encode()).hexdigest()


def words_of(text: str) -> Words:
    """The words of an answer from its column; raises `ValueError` or `MsgspecError` if a ledger has no such words."""
    query, answer, *numbers, error = msgspec.convert(json.loads(text), Words)
    shown = (None if one is None else printable(one) for one in (answer, error))
    return printable(query), next(shown), *numbers, next(shown)


def _json_list(texts: Iterable[str | None]) -> str:
    """The elements of a list as `json.dumps` writes them, in half of the time: opening a ledger hashes all rows."""
    return ", ".join(["null" if text is None else _json_of(text) for text in texts])
