"""A ledger serves one promise and notices what was changed behind its back."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpnb.ledger import Ledger
from ledger.rows import PROMISE, filled, opened, refused_unchanged, tamper


@pytest.mark.parametrize(
    ("promise", "what"),
    [
        ({"name": "ward", "budget": "mu 1"}, "another name; it says clinic, the session says ward"),
        ({"name": "clinic", "budget": "mu 2"}, "another budget; it says mu 1, the session says mu 2"),
        ({"name": "clinic"}, "another budget; it says mu 1, the session says None"),
        ({**PROMISE, "unit": "person"}, "another unit; it says None, the session says person"),
        ({}, "another budget"),
    ],
)
def test_a_ledger_serves_no_other_promise(path: Path, promise: dict[str, str], what: str) -> None:
    filled(path)
    with refused_unchanged(path.parent, what):
        Ledger(path, promise)


def test_settings_are_those_of_the_first_kernel(path: Path) -> None:
    with opened(path, gamma="1"):
        pass
    with opened(path, gamma="2", delta="3") as ledger:
        assert ledger.settings == {"gamma": "1"}


COLUMNS = (
    "id time key branch version question plan request target loss sigma tau looks cell launch hash state measurement "  # noqa: SIM905
    "result_hash".split()
)
ALTERED = [
    *(f"UPDATE charges SET {column} = {value} WHERE id = 2" for column in COLUMNS for value in ("7", "'7'")),
    *(f"UPDATE charges SET {column} = x'37' WHERE id = 2" for column in COLUMNS if column != "id"),
    *(f"UPDATE charges SET {column} = NULL WHERE id = 2" for column in ("sigma", "tau", "measurement")),
    *(
        f"UPDATE charges SET {column} = (SELECT {column} FROM charges WHERE id = 3) WHERE id = 2"
        for column in ("plan", "hash", "state", "measurement", "result_hash")
    ),
    "UPDATE charges SET measurement = (SELECT measurement FROM charges WHERE id = 1), state = 'released' WHERE id = 3",
    *(f"DELETE FROM charges WHERE id = {number}" for number in range(1, 6)),
    "DELETE FROM charges WHERE id > 3",
    "DELETE FROM charges",
    "UPDATE charges SET id = id + 1 WHERE id = 5",
    "INSERT INTO charges SELECT 6, time, 'f', branch, version, question, plan, request, target, loss, sigma, tau, "
    "looks, cell, launch, hash, state, measurement, result_hash FROM charges WHERE id = 5",
    "UPDATE promise SET value = 'mu 100' WHERE name = 'budget'",
    "DELETE FROM promise WHERE name = 'budget'",
    "INSERT INTO promise VALUES ('filter', 'none')",
    "UPDATE settings SET value = '0x1p-4'",
    "DELETE FROM settings",
    "INSERT INTO settings VALUES ('odometer_delta', '1/2')",
    "UPDATE last SET id = 4",
    "UPDATE last SET hash = 'x'",
    "DELETE FROM last",
    "INSERT INTO last SELECT * FROM last",
    "DROP TABLE last",
    "DROP TABLE charges",
    "DROP TABLE settings",
    "ALTER TABLE charges RENAME COLUMN sigma TO scale",
]


@pytest.mark.parametrize("statement", ALTERED)
def test_an_altered_ledger_is_refused(path: Path, statement: str) -> None:
    filled(path)
    tamper(path, statement)
    with refused_unchanged(path.parent, "ledger"):
        Ledger(path, PROMISE)


@pytest.mark.parametrize(
    ("statement", "promise"),
    [
        ("UPDATE promise SET value = 'mu 100' WHERE name = 'budget'", {"name": "clinic", "budget": "mu 100"}),
        ("UPDATE settings SET value = '0x1p-4'", PROMISE),
        ("DELETE FROM last", PROMISE),
    ],
)
@pytest.mark.parametrize("rows", [0, 5])
def test_a_promise_that_was_widened_in_the_file_is_noticed(
    path: Path, statement: str, promise: dict[str, str], rows: int
) -> None:
    if rows:
        filled(path)
    else:
        opened(path, gamma="0x1p-3").__exit__()
    tamper(path, statement)
    with refused_unchanged(path.parent, "must be as dpnb left it"):
        Ledger(path, promise)


def test_an_unaltered_ledger_is_not_refused(path: Path) -> None:
    filled(path)
    tamper(path, "UPDATE charges SET id = id")
    with opened(path) as ledger:
        assert len(ledger.charges()) == 5
