"""One row of the ledger: what it says, how it is stored, and the hash that chains it to the row before.

The chain notices an edited, inserted or missing row; it is not a seal against somebody who recomputes it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from sys import intern
from typing import Any, NamedTuple

from dpnb.accounting.exact import from_text
from dpnb.accounting.losses import GDP, Loss, loss_from_json
from dpnb.errors import LedgerError
from dpnb.ledger.readable import readable
from dpnb.mechanisms.measurement import Measurement

RESERVED_COLUMNS = (
    *("id", "time", "key", "branch", "version", "question", "plan"),
    *("request", "target", "loss", "sigma", "tau", "looks", "cell", "launch"),
)
"""Written with the charge and never changed."""

ENTRY_COLUMNS = ("id", "branch", "version", "loss", "cell", "launch")

COLUMNS = (*RESERVED_COLUMNS, "hash", "state", "measurement", "result_hash")

MAY_BE_EMPTY = {"sigma", "tau", "cell", "launch", "measurement"}
STATES = ("reserved", "released", "failed")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)

TABLE = """
CREATE TABLE charges (
    id INTEGER PRIMARY KEY, time TEXT NOT NULL, key TEXT NOT NULL UNIQUE, branch TEXT NOT NULL, version TEXT NOT NULL,
    question TEXT NOT NULL, plan TEXT NOT NULL, request TEXT NOT NULL, target TEXT NOT NULL, loss TEXT NOT NULL,
    sigma TEXT, tau TEXT, looks TEXT NOT NULL, cell TEXT, launch TEXT, hash TEXT NOT NULL, state TEXT NOT NULL,
    measurement TEXT, result_hash TEXT NOT NULL
);
CREATE INDEX charges_by_question ON charges (version, branch, question);
CREATE INDEX charges_by_branch ON charges (branch);
"""


@dataclass(frozen=True)
class Charge:
    """One row of the ledger.

    Parameters
    ----------
    id : int
        1, 2, ... in order.
    time : str
        When it was reserved; UTC, ISO 8601.
    key : str
        Identity of the request: table version, plan and arguments.
    branch : str
        In which session, sub-session, part or other mechanism it was asked: see :mod:`dpnb.ledger.branch`.
    version : str
        Of the table.
    question : str
        What is measured, equal for equal questions however they were written; of a launch its name.
    plan, request : str
        What was asked, as it was written; JSON, or empty for a launch.
    target : GDP
        How well the question is known with this answer: its total loss, earlier looks included.
    loss : Loss
        What this row costs its branch; GDP for everything that is measured with Gaussian noise.
    sigma : float or None
        Scale of the fresh noise, in grid units; None when nothing was measured.
    tau : float or None
        Parameter of the confidence sequence, fixed by a question's first look.
    looks : tuple of int
        Ids of the rows whose measurements make the answer, this one included.
    state : str
        ``reserved``, ``released`` or ``failed``.
    measurement : Measurement or None
        The released values.
    keys : tuple of tuple, or None
        Keys of the released values, where the question was which there are.
    cell : str or None
        Id of the notebook cell that asked first; None outside a notebook.
    launch : mapping or None
        What a row is that launches or closes a mechanism; None for a question.
    said : mapping or None
        What was released, where it is no measurement.
    """

    id: int
    time: str
    key: str
    branch: str
    version: str
    question: str
    plan: str
    request: str
    target: GDP
    loss: Loss
    sigma: float | None
    tau: float | None
    looks: tuple[int, ...]
    state: str
    measurement: Measurement | None
    keys: tuple[tuple[Any, ...], ...] | None = None
    cell: str | None = None
    launch: Mapping[str, Any] | None = None
    said: Mapping[str, Any] | None = None

    @property
    def gdp(self) -> GDP:
        """The loss of what was measured with Gaussian noise.

        Raises
        ------
        LedgerError
            Another kind of loss.
        """
        if not isinstance(self.loss, GDP):
            raise LedgerError(f"ledger: row {self.id} must hold the loss of Gaussian noise; got {self.loss!r}")
        return self.loss


class Entry(NamedTuple):
    """What of a row counts for budgets, and never changes once it is written; see `Charge` for what each is."""

    id: int
    branch: str
    version: str
    loss: Loss
    cell: str | None
    launch: Mapping[str, Any] | None


def entry_of(stored: tuple[Any, ...]) -> Entry:
    """A row's entry, from its `ENTRY_COLUMNS`; equal parts of many rows are kept once.

    Raises
    ------
    LedgerError
        A column does not hold what a ledger writes.
    """
    number, branch, version, loss, cell, launch = stored
    with readable(f"row {number}"):
        return Entry(
            number,
            intern(branch),
            intern(version),
            _loss_of(loss),
            None if cell is None else intern(cell),
            None if launch is None else _mapping(launch),
        )


def stored_of(values: tuple[Any, ...]) -> dict[str, Any] | None:
    """A row's columns by name; None if one is not of the type that a ledger writes, which SQLite does not enforce."""
    stored = dict(zip(COLUMNS, values, strict=True))
    texts = {name: value for name, value in stored.items() if not (value is None and name in MAY_BE_EMPTY)}
    number = texts.pop("id")
    if not isinstance(number, int) or not all(isinstance(text, str) for text in texts.values()):
        return None
    return stored if stored["state"] in STATES and TIME.fullmatch(stored["time"]) else None


def charge_of(stored: Mapping[str, Any]) -> Charge:
    """The row as it was meant, from its columns.

    Raises
    ------
    LedgerError
        A column does not hold what a ledger writes.
    """
    with readable(f"row {stored['id']}"):
        content = None if stored["measurement"] is None else _mapping(stored["measurement"])
        values = content if content is not None and "values" in content else None
        keys = (content or {}).get("keys")
        return Charge(
            id=stored["id"],
            time=stored["time"],
            key=stored["key"],
            branch=stored["branch"],
            version=stored["version"],
            question=stored["question"],
            plan=stored["plan"],
            request=stored["request"],
            target=_target_of(stored["target"]),
            loss=_loss_of(stored["loss"]),
            sigma=None if stored["sigma"] is None else float.fromhex(stored["sigma"]),
            tau=None if stored["tau"] is None else float.fromhex(stored["tau"]),
            looks=_looks(stored["looks"]),
            state=stored["state"],
            measurement=None if values is None else Measurement.from_json(values),
            keys=None if keys is None else tuple(tuple(key) for key in keys),
            cell=stored["cell"],
            launch=None if stored["launch"] is None else _mapping(stored["launch"]),
            said=content if values is None else None,
        )


@lru_cache(maxsize=1024)
def _loss_of(text: str) -> Loss:
    return loss_from_json(json.loads(text))


@lru_cache(maxsize=1024)
def _target_of(text: str) -> GDP:
    return GDP.from_squared(from_text(text))


def _looks(text: str) -> tuple[int, ...]:
    looks = json.loads(text)
    if not all(type(look) is int and look > 0 for look in looks):
        raise ValueError
    return tuple(looks)


def _mapping(text: str) -> dict[str, Any]:
    content = json.loads(text)
    if not isinstance(content, dict):
        raise TypeError(type(content).__name__)
    return content


_ENCODER = json.JSONEncoder(sort_keys=True, default=repr)


def digest(content: object) -> str:
    """SHA-256 of a JSON-like value, in hexadecimal."""
    return hashlib.sha256(_ENCODER.encode(content).encode()).hexdigest()


def chained_hash(previous: str, stored: Mapping[str, Any]) -> str:
    """Hash of what a charge fixed, over the hash of the row before."""
    return digest([previous, *(stored[name] for name in RESERVED_COLUMNS)])


def result_hash(chained: str, state: str, measurement: str | None) -> str:
    """Hash of what became of a charge."""
    return digest([chained, state, measurement])
