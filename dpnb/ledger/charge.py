"""One row of the ledger: what it says, how it is stored, and the hash that chains it to the row before.

The chain notices an edited, inserted or missing row; it is not a seal against somebody who recomputes it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpnb.accounting.exact import from_text
from dpnb.accounting.losses import GDP, Loss, loss_from_json
from dpnb.errors import DpnbError, LedgerError
from dpnb.mechanisms.measurement import Measurement

RESERVED_COLUMNS = (
    *("id", "time", "key", "version", "question", "plan"),
    *("request", "target", "loss", "sigma", "tau", "looks", "cell"),
)
"""Written with the charge and never changed."""

COLUMNS = (*RESERVED_COLUMNS, "hash", "state", "measurement", "result_hash")

TABLE = """
CREATE TABLE charges (
    id INTEGER PRIMARY KEY, time TEXT NOT NULL, key TEXT NOT NULL UNIQUE, version TEXT NOT NULL, question TEXT NOT NULL,
    plan TEXT NOT NULL, request TEXT NOT NULL, target TEXT NOT NULL, loss TEXT NOT NULL, sigma TEXT, tau TEXT,
    looks TEXT NOT NULL, cell TEXT, hash TEXT NOT NULL, state TEXT NOT NULL, measurement TEXT, result_hash TEXT NOT NULL
);
CREATE INDEX charges_by_question ON charges (version, question);
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
    version : str
        Of the table.
    question : str
        What is measured, equal for equal questions however they were written.
    plan, request : str
        What was asked, as it was written; JSON.
    target : GDP
        How well the question is known with this answer: its total loss, earlier looks included.
    loss : GDP
        What this row cost.
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
    """

    id: int
    time: str
    key: str
    version: str
    question: str
    plan: str
    request: str
    target: GDP
    loss: GDP
    sigma: float | None
    tau: float | None
    looks: tuple[int, ...]
    state: str
    measurement: Measurement | None
    keys: tuple[tuple[Any, ...], ...] | None = None
    cell: str | None = None


def charge_of(stored: Mapping[str, Any]) -> Charge:
    """The row as it was meant, from its columns.

    Raises
    ------
    LedgerError
        A column does not hold what a ledger writes.
    """
    try:
        measurement = None if stored["measurement"] is None else json.loads(stored["measurement"])
        keys = (measurement or {}).get("keys")
        return Charge(
            id=stored["id"],
            time=stored["time"],
            key=stored["key"],
            version=stored["version"],
            question=stored["question"],
            plan=stored["plan"],
            request=stored["request"],
            target=GDP.from_squared(from_text(stored["target"])),
            loss=_gaussian(loss_from_json(json.loads(stored["loss"]))),
            sigma=None if stored["sigma"] is None else float.fromhex(stored["sigma"]),
            tau=None if stored["tau"] is None else float.fromhex(stored["tau"]),
            looks=tuple(json.loads(stored["looks"])),
            state=stored["state"],
            measurement=None if measurement is None else Measurement.from_json(measurement),
            keys=None if keys is None else tuple(tuple(key) for key in keys),
            cell=stored["cell"],
        )
    except (DpnbError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise LedgerError(
            f"ledger: row {stored.get('id')} must read as dpnb wrote it, got {type(error).__name__} while reading it; "
            "restore the file from a copy that has every charge"
        ) from None


def _gaussian(loss: Loss) -> GDP:
    if not isinstance(loss, GDP):
        raise ValueError("a charge is for a Gaussian release")
    return loss


def digest(content: object) -> str:
    """SHA-256 of a JSON-like value, in hexadecimal."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=repr).encode()).hexdigest()


def chained_hash(previous: str, stored: Mapping[str, Any]) -> str:
    """Hash of what a charge fixed, over the hash of the row before."""
    return digest([previous, *(stored[name] for name in RESERVED_COLUMNS)])


def result_hash(chained: str, state: str, measurement: str | None) -> str:
    """Hash of what became of a charge."""
    return digest([chained, state, measurement])
