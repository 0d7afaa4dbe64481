"""A ledger serves one promise and notices what was changed behind its back."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpnb.ledger import Ledger
from dpnb.ledger.charge import COLUMNS
from ledger.rows import METADATA, filled, opened, refused_unchanged, tamper


@pytest.mark.parametrize(
    ("promise", "what"),
    [
        ({"name": "ward", "budget": "mu 1"}, "another name"),
        ({"name": "clinic", "budget": "mu 2"}, "another budget"),
        ({"name": "clinic"}, "another budget"),
        ({**METADATA, "unit": "person"}, "another unit"),
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
        assert ledger.parameters == {"gamma": "1"}


COPIED = ", ".join("'f'" if name == "request_key" else name for name in COLUMNS[1:])
ALTERED = [
    *(f"UPDATE events SET {column} = {value} WHERE id = 2" for column in COLUMNS for value in ("7", "'7'")),
    *(f"UPDATE events SET {column} = x'37' WHERE id = 2" for column in COLUMNS if column != "id"),
    *(f"UPDATE events SET {column} = NULL WHERE id = 2" for column in ("sigma", "tau", "result")),
    *(
        f"UPDATE events SET {column} = (SELECT {column} FROM events WHERE id = 3) WHERE id = 2"
        for column in ("request", "hash", "status", "result", "answer_digest", "result_hash")
    ),
    "UPDATE events SET result = (SELECT result FROM events WHERE id = 1), status = 'released' WHERE id = 3",
    *(f"DELETE FROM events WHERE id = {number}" for number in range(1, 6)),
    "DELETE FROM events WHERE id > 3",
    "DELETE FROM events",
    "UPDATE events SET id = id + 1 WHERE id = 5",
    f"INSERT INTO events SELECT 6, {COPIED} FROM events WHERE id = 5",
    "UPDATE metadata SET value = 'mu 100' WHERE key = 'budget'",
    "DELETE FROM metadata WHERE key = 'budget'",
    "INSERT INTO metadata VALUES ('filter', 'none')",
    "UPDATE parameters SET value = '0x1p-4'",
    "DELETE FROM parameters",
    "INSERT INTO parameters VALUES ('odometer_delta', '1/2')",
    "UPDATE head SET id = 4",
    "UPDATE head SET hash = 'x'",
    "DELETE FROM head",
    "INSERT INTO head SELECT * FROM head",
    "DROP TABLE head",
    "DROP TABLE events",
    "DROP TABLE parameters",
    "ALTER TABLE events RENAME COLUMN sigma TO scale",
]


@pytest.mark.parametrize("statement", ALTERED)
def test_an_altered_ledger_is_refused(path: Path, statement: str) -> None:
    filled(path)
    tamper(path, statement)
    with refused_unchanged(path.parent, "ledger"):
        Ledger(path, METADATA)


@pytest.mark.parametrize(
    ("statement", "promise"),
    [
        ("UPDATE metadata SET value = 'mu 100' WHERE key = 'budget'", {"name": "clinic", "budget": "mu 100"}),
        ("UPDATE parameters SET value = '0x1p-4'", METADATA),
        ("DELETE FROM head", METADATA),
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
    tamper(path, "UPDATE events SET id = id")
    with opened(path) as ledger:
        assert len(ledger.charges()) == 5
