"""A table whose schema the curator has extended: what its analysts see of that, and what their copies of it stand."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

import dpnb
from dpnb.curator.verification import verify
from dpnb.errors import DpnbError, LedgerReplaced
from dpnb.ledger import chain
from dpnb.ledger.charge import VERSION
from dpnb.ledger.replica import ReplicaLedger
from dpnb.ledger.shared_rows import SharedRows
from remote.people import SCHEMA, connected, people

FIRST = {name: SCHEMA[name] for name in ("ward", "age")}
MORE = {"cost": SCHEMA["cost"], **FIRST}


def copied(session: dpnb.Session) -> ReplicaLedger:
    copy = ReplicaLedger("https://table", session.ledger.metadata, session.ledger.parameters)
    copy.append(SharedRows(session.ledger).after(0, 100))
    return copy


def test_an_analyst_has_the_new_column_and_no_row_about_it(tmp_path: Path) -> None:
    ledger = tmp_path / "people.dpnb"
    people(schema=FIRST, ledger=ledger).frame["age"].mean().release(mu=0.05)
    session = people(schema=MORE, ledger=ledger)
    with connected(session, tmp_path) as (remote, _):
        assert list(remote.schema) == ["cost", "ward", "age"]
        remote.frame["cost"].mean().release(mu=0.05)
        assert VERSION not in {row.kind for row in remote.ledger.charges()}
        assert [row.kind for row in session.ledger.charges()] == ["release", VERSION, "release"]
        assert remote.spent == session.spent
    lacks = people(schema=FIRST, ledger=ledger)  # the curator has taken the column back
    with connected(lacks, tmp_path) as (remote, _):
        assert list(remote.schema) == ["ward", "age"]
        with pytest.raises(DpnbError, match="cost"):
            remote.frame["cost"].mean()
        remote.frame["age"].sum().release(mu=0.05)
        assert "cost" in str(remote.log)


def test_a_copy_stays_one_when_columns_are_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = tmp_path / "people.dpnb"
    session = people(schema=FIRST, ledger=ledger)
    session.frame["age"].mean().release(mu=0.05)
    with closing(copied(session)) as copy:
        later = people(schema=MORE, ledger=ledger)
        later.frame["cost"].mean().release(mu=0.05)
        SharedRows(later.ledger).refuse_fork(copy.count, copy.head)
        copy.append(SharedRows(later.ledger).after(copy.count, 100))
        SharedRows(later.ledger).refuse_fork(copy.count, copy.head)
        with closing(copied(later)) as another:
            assert another.head == copy.head
        with monkeypatch.context() as patch:  # the control: a chain that begins with all columns
            patch.setattr(chain, "before_added", lambda metadata: metadata)
            with pytest.raises(LedgerReplaced):
                SharedRows(later.ledger).refuse_fork(copy.count, copy.head)


def test_a_copy_of_a_declaration_that_was_replaced_is_refused(tmp_path: Path) -> None:
    ledger = tmp_path / "people.dpnb"
    session = people(schema=FIRST, ledger=ledger)
    with closing(copied(session)) as copy:
        later = people(schema={**FIRST, "age": dpnb.Bounded(0, 98)}, ledger=ledger)
        with pytest.raises(LedgerReplaced, match="connect again"):
            SharedRows(later.ledger).refuse_fork(copy.count, copy.head)


def test_statements_of_analysts_are_verified_before_and_after(tmp_path: Path) -> None:
    ledger = tmp_path / "people.dpnb"
    session = people(schema=FIRST, ledger=ledger)
    with connected(session, tmp_path) as (remote, _):
        remote.frame["age"].mean().release(mu=0.05)
        remote.report().save(tmp_path / "before.json")
    session = people(schema=MORE, ledger=ledger)
    with connected(session, tmp_path) as (remote, _):
        remote.report().save(tmp_path / "between.json")
        remote.frame["cost"].mean().release(mu=0.05)
        remote.report().save(tmp_path / "after.json")
    for name in ("before", "between", "after"):
        assert verify(str(tmp_path / f"{name}.json"), str(ledger)).differences == (), name
    text = (tmp_path / "after.json").read_text().replace('"name": "cost"', '"name": "costs"')
    (tmp_path / "altered.json").write_text(text)
    assert verify(str(tmp_path / "altered.json"), str(ledger)).differences
