"""Ledgers with rows in them, for the tests of this folder."""

from __future__ import annotations

import gc
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpnb._plan.measurements import Count, CountUnits, PlainView
from dpnb._plan.plan import Plan
from dpnb._request import Release
from dpnb._target import target_from
from dpnb.accounting.losses import GDP
from dpnb.errors import LedgerError
from dpnb.ledger import Charge, Ledger
from dpnb.mechanisms.measurement import Measurement

METADATA = {"name": "clinic", "budget": "mu 1"}
NOISY = Measurement((12, -7, 2**80), -3, 1.25)
REQUEST, OTHER = (Release(Plan(one), PlainView(), target_from(mu="0.1")).text for one in (Count(), CountUnits()))


def opened(path: Path | str, metadata: dict[str, str] = METADATA, **parameters: str) -> closing[Ledger]:
    return closing(Ledger(path, metadata, parameters))


def reserve(ledger: Ledger, key: str, **changes: Any) -> Charge:
    columns: dict[str, Any] = {
        "request_key": key,
        "table_version": "1",
        "query_key": "visits",
        "request": REQUEST,
        "total_loss": GDP(0.1),
        "loss": GDP(0.1),
        "sigma": 1.25,
        "tau": 0.5,
        "observations": (),
    }
    with ledger.transaction():
        return ledger.reserve(**{**columns, **changes})


def answered(ledger: Ledger, charge: Charge, measurement: Measurement = NOISY) -> Charge:
    return ledger.answer(replace(charge, status="released", measurement=measurement))


def filled(path: Path) -> list[Charge]:
    """A closed ledger with a row of each state."""
    with opened(path, gamma="0x1p-3") as ledger:
        answered(ledger, reserve(ledger, "a"))
        answered(ledger, reserve(ledger, "b", query_key="towns", request=OTHER))
        reserve(ledger, "c")
        ledger.fail(reserve(ledger, "d"))
        reserve(ledger, "e", loss=GDP(0), sigma=None, tau=None, observations=(1, 2))
        return ledger.charges()


def tamper(path: Path, statement: str, *arguments: object) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        assert connection.execute(statement, arguments).rowcount != 0


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


@contextmanager
def refused_unchanged(folder: Path, match: str) -> Iterator[None]:
    """Refused with a full message; no byte of any file changes and none appears."""
    before = contents(folder)
    with pytest.raises(LedgerError, match=match) as refused:
        yield
    assert str(refused.value).startswith("ledger '")
    assert refused.value.__cause__ is None
    gc.collect()
    assert contents(folder) == before
