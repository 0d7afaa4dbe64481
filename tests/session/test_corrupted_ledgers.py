"""Whatever a ledger's file holds, it is read or refused with a `LedgerError`, also where the hashes are right."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

import dpnb
from core.people import curator
from dpnb._core.accountant import accountant, later_sessions, tree
from dpnb._core.pricing import query_state
from dpnb._request import request_from
from dpnb.curator.personal_statement import statement
from dpnb.curator.personal_statement_text import statement_text
from dpnb.errors import LedgerError
from dpnb.ledger import charge as charges
from dpnb.ledger.charge import COLUMNS, RESERVED_COLUMNS, digest

SEEDS, MORE_SEEDS = range(50), range(50, 200)
VALUES: list[Any] = [
    *(None, b"\xff\x00", b"x", 7, -1, 2**62, 1.5, float("inf"), "", "x", "[]", "{}", "null", "1", "1/0", "-1", "nan"),
    *("[" * 100_000, "9" * 5000, '["a"]', "[null]", "[0]", "[99]", "[1e400]", '5 ["a"]', "99", "x y", "-3"),
    *('{"kind": "gdp"}', '{"kind": "gdp", "mu_squared": "-4"}', '{"kind": "gdp", "mu_squared": 5}', '{"kind": []}'),
    *('{"kind": "gdp", "mu_squared": "1/0"}', '{"kind": "pure-dp", "epsilon": "x"}', '{"closes": 99}'),
    *(
        '{"closes": "x"}',
        '{"mechanism": "partition", "name": "x"}',
        '{"mechanism": "partition", "name": 5}',
        '{"above": 1}',
    ),
    *(
        '{"mechanism": "sub_session", "name": "x"}',
        '{"mechanism": [], "name": "x"}',
        '{"values": [1]}',
        '{"values": "x"}',
    ),
]


def asked(folder: Path, accounting: str) -> None:
    """A ledger with rows of many kinds."""
    session, _, _ = made(folder, accounting)
    frame = session.frame
    frame.count().release(mu="0.01")
    for mu in ("0.02", "0.03"):
        frame["visits"].sum().release(mu=mu)
    frame.groupby("town")["visits"].mean().release(mu="0.01")
    session.partition("town", name="towns")["north"].frame.count().release(mu="0.01")
    if accounting == "worst-case":
        session.delegate(mu="0.05", name="team").frame.count().release(mu="0.02")
        scan = session.above_threshold(3, name="line", epsilon="0.01")
        scan.ask(frame.count())
        scan.close()
    session.noise_reduction(frame["visits"].sum(), initial_mu="0.01", max_mu="0.05").step()
    session.ledger.close()


def made(folder: Path, accounting: str) -> tuple[dpnb.Session, Path, Path]:
    changes = {} if accounting == "individual" else {"accounting": accounting, "on_exhausted": None}
    return curator(folder, "skip", **changes)  # type: ignore[arg-type]


# --- what goes wrong ------------------------------------------------------------------------------------------------


def with_other_bytes(path: Path, chance: random.Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 5, 50, 1000))):
        content[chance.randrange(len(content))] = chance.randrange(256)
    path.write_bytes(content)


def cut_off(path: Path, chance: random.Random) -> None:
    path.write_bytes(path.read_bytes()[: chance.randrange(path.stat().st_size)])


def with_another_value(path: Path, chance: random.Random) -> None:
    with lenient(path) as file:
        replace_one(file, chance)


def with_another_value_and_new_hashes(path: Path, chance: random.Random) -> None:
    with lenient(path) as file:
        replace_one(file, chance)
        hash_again(file)


def with_another_promise(path: Path, chance: random.Random) -> None:
    with lenient(path) as file:
        table = chance.choice(("metadata", "parameters"))
        name, value = chance.choice(file.execute(f"SELECT key, value FROM {table}").fetchall())
        other = chance.choice([*VALUES, value.replace(chance.choice(value), chance.choice("0/x{\x1b"), 1)])
        file.execute(f"UPDATE {table} SET value = ? WHERE key = ?", (other, name))
        if chance.random() < 0.5:
            hash_again(file)


@contextmanager
def lenient(path: Path) -> Iterator[sqlite3.Connection]:
    """A file in which a column may hold anything; its tables look as before."""
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("PRAGMA synchronous = OFF")
        before = file.execute("SELECT sql, name FROM sqlite_master WHERE type = 'table'").fetchall()
        rename(file, [(sql.replace(" NOT NULL", ""), name) for sql, name in before])
        yield file
        rename(file, before)


def rename(file: sqlite3.Connection, statements: list[tuple[str, str]]) -> None:
    file.execute("PRAGMA writable_schema = ON")
    for statement_and_name in statements:
        file.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", statement_and_name)
    file.execute("PRAGMA writable_schema = RESET")


def replace_one(file: sqlite3.Connection, chance: random.Random) -> None:
    column = chance.choice([name for name in COLUMNS if name not in ("id", "request_key")])
    ((last,),) = file.execute("SELECT max(id) FROM events").fetchall()
    number = chance.randint(1, last)
    ((value,),) = file.execute(f"SELECT {column} FROM events WHERE id = ?", (number,)).fetchall()
    other = chance.choice(VALUES)
    if isinstance(value, str) and value.startswith(("{", "[")) and chance.random() < 0.7:
        other = json.dumps(changed(json.loads(value), chance))
    file.execute(f"UPDATE events SET {column} = ? WHERE id = ?", (other, number))


def changed(content: Any, chance: random.Random) -> Any:
    """JSON with one thing in it that is missing, or another one."""
    if content and isinstance(content, dict | list):
        place = chance.choice(list(content) if isinstance(content, dict) else range(len(content)))
        if isinstance(content, dict) and chance.random() < 0.3:
            del content[place]
        else:
            content[place] = changed(content[place], chance)
        return content
    return chance.choice([None, 5, "x", [], {}, -1, "1/0", 1e300, True, ["a"]])


def hash_again(file: sqlite3.Connection) -> None:
    promise, settings = (dict(file.execute(f"SELECT key, value FROM {name}")) for name in ("metadata", "parameters"))
    number, previous = 0, digest([promise, settings])
    for values in file.execute(f"SELECT {', '.join(COLUMNS)} FROM events ORDER BY id").fetchall():
        row = dict(zip(COLUMNS, values, strict=True))
        number, previous = row["id"], digest([previous, *(row[name] for name in RESERVED_COLUMNS)])
        answer = row["result"], row["words"]
        sealing = None if answer == (None, None) else digest([row["salt"], *answer])
        hashed = previous, sealing, digest([previous, row["status"], sealing]), number
        file.execute("UPDATE events SET hash = ?, answer_digest = ?, result_hash = ? WHERE id = ?", hashed)
    file.execute("UPDATE head SET id = ?, hash = ?", (number, previous))


WAYS: list[Callable[[Path, random.Random], None]] = [
    *(with_other_bytes, cut_off, with_another_value, with_another_promise),
    *(with_another_value_and_new_hashes,) * 3,
]


# --- what becomes of it ---------------------------------------------------------------------------------------------


def open_and_look(folder: Path, accounting: str) -> None:
    session, _, _ = made(folder, accounting)
    try:
        _ = str(session), session._repr_html_(), session.log, str(session.mechanisms), session.headroom
        session.frame["visits"].count().release(mu="0.01")
    finally:
        session.ledger.close()


def state(folder: Path, accounting: str) -> None:
    if accounting == "individual":
        statement_text(statement(str(folder / "clinic.dpnb"), [str(folder / "table.csv")], "p0", version="1"))


@pytest.fixture(scope="module")
def ledgers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each accounting."""
    folder = tmp_path_factory.mktemp("ledgers")
    for accounting in ("individual", "worst-case"):
        (folder / accounting).mkdir()
        asked(folder / accounting, accounting)
    return folder


def outcomes(ledgers: Path, tmp_path: Path, seeds: range) -> Iterator[str]:
    """What becomes of opening, looking at and stating each of the corrupted ledgers."""
    for seed in seeds:
        chance = random.Random(seed)
        accounting = chance.choice(("individual", "worst-case"))
        folder = tmp_path / str(seed)
        shutil.copytree(ledgers / accounting, folder)
        chance.choice(WAYS)(folder / "clinic.dpnb", chance)
        for act in (state, open_and_look):
            try:
                act(folder, accounting)
                yield "fine"
            except LedgerError as error:
                yield "refused" if str(error).isprintable() else f"{seed}: {error}"
            except Exception as error:  # noqa: BLE001  (the test says which)
                yield f"{seed}, {act.__name__}: {error!r}"
        shutil.rmtree(folder)


@pytest.mark.parametrize("seeds", [SEEDS, pytest.param(MORE_SEEDS, marks=pytest.mark.slow)], ids=str)
def test_a_corrupted_ledger_is_refused_in_one_way(seeds: range, ledgers: Path, tmp_path: Path) -> None:
    found = Counter(outcomes(ledgers, tmp_path, seeds))
    assert set(found) == {"fine", "refused"}
    assert found["refused"] > len(seeds)


def test_without_looking_at_what_is_read_other_errors_would_come_out(
    ledgers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (charges, accountant, later_sessions, tree):
        monkeypatch.setattr(module, "refuse_unreadable", lambda _: nullcontext())
    monkeypatch.setattr(query_state, "requested", lambda charge: request_from(charge.request))
    assert any(outcome not in ("fine", "refused") for outcome in outcomes(ledgers, tmp_path, SEEDS))
