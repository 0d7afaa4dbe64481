"""A person's tracker is for that person: nothing of it can be reached from the analyst's session.

The tracker is computed by the curator's command alone.  The attacks look for it in everything that can be watched of a
session, also of one that goes on while the curator makes statements in the same process; in all objects that a session
refers to; in what a session's process has loaded; and in a notebook's kernel.  Nothing here is drawn.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from types import BuiltinFunctionType, FrameType, FunctionType, ModuleType
from typing import Any

import pandas as pd
import pytest

import dpnb
from dpnb._core import session_explanation as participation
from dpnb._core.unit_budgets import UnitChargeRecord
from dpnb.accounting import RenyiTracker
from dpnb.accounting.individual import UnitTracker
from dpnb.curator.personal_statement import Statement, StatementEntry, statement
from dpnb.curator.personal_statement_text import statement_text
from dpnb.errors import StatementError
from dpnb.session import snapshot
from statistical.test_attack_exhausted import TABLES, _plain, first, forced, opened
from statistical.watching import ledger_rows, watched
from waiting import LIMIT

pytestmark = pytest.mark.statistical

__all__ = ["forced"]

TESTS = Path(__file__).resolve().parent.parent
TABLE_A, TABLE_B = TABLES["nobody is exhausted"], TABLES["everybody is"]
"""What the queries of `first` charge the persons differs; the rest is the same."""


def faces(session: dpnb.Session, ledger: Path) -> dict[str, Any]:
    """What an analyst can watch of a session, and release from it."""
    frame = session.frame
    calls = {
        "repr": lambda: repr(session),
        "html": session._repr_html_,
        "explain": session.explain,
        "spent": lambda: (repr(session.spent), repr(session.headroom), repr(session.filter)),
        "odometer": lambda: (repr(session.odometer), session.odometer.statement()),
        "snapshot": lambda: repr(snapshot.snapshot(session)),
        "log": lambda: session.log.to_csv(),
        "preview": lambda: repr(frame.count().preview(mu="0.3")),
        "release": lambda: repr(frame[frame["site"] == "b"].count().release(mu="0.3")),
        "refusal": lambda: frame.count().release(mu="-1"),
        "active units": lambda: repr(session.count_active_units("now").release(mu="0.1")),
        "ledger": lambda: ledger_rows(ledger),
    }
    return {name: _plain(watched(call)) for name, call in calls.items()}


def made(ledger: Path, table: pd.DataFrame, folder: Path) -> list[Statement]:
    file = folder / "table.parquet"
    table.to_parquet(file, index=False)  # with the types that the sessions had
    return [statement(str(ledger), [str(file)], unit) for unit in ("0", "1")]


def attacked(table: pd.DataFrame, folder: Path) -> tuple[list[Statement], dict[str, Any]]:
    """Statements that the curator makes between two queries, and what the analyst sees after that."""
    ledger = folder / "people.dpnb"  # the same path each time, since it identifies the session
    ledger.unlink(missing_ok=True)
    session = opened(table, ledger)
    first(session)
    statements = made(ledger, table, folder)
    for one in statements:
        statement_text(one)
    seen = faces(session, ledger)
    session.ledger.close()
    return statements, seen


@pytest.mark.usefixtures("forced")
def test_trackers_that_differ_show_in_nothing_that_can_be_watched(tmp_path: Path) -> None:
    (of_a, seen_a), (of_b, seen_b) = (attacked(table, tmp_path) for table in (TABLE_A, TABLE_B))
    for one, other in zip(of_a, of_b, strict=True):
        assert [entry.tracked for entry in one.entries] != [entry.tracked for entry in other.entries]
        assert [entry.worst_case for entry in one.entries] == [entry.worst_case for entry in other.entries]
    assert seen_a == seen_b


@pytest.mark.usefixtures("forced")
def test_control_a_gauge_that_shows_the_last_reading_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    last: list[Any] = [0]
    step = UnitTracker.step

    def noted(tracker: UnitTracker, charge: Any) -> UnitTracker:
        after = step(tracker, charge)
        last[0] = after.bound
        return after

    monkeypatch.setattr(UnitTracker, "step", noted)
    described = participation.participation_description
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("dpnb.") and vars(module).get(described.__name__) is described:
            monkeypatch.setattr(module, "participation_description", lambda account: f"so far {last[0]}")
    (_, seen_a), (_, seen_b) = (attacked(table, tmp_path) for table in (TABLE_A, TABLE_B))
    assert seen_a != seen_b


# --- what a session refers to -----------------------------------------------------------------------------------------

SECRETS = (UnitTracker, RenyiTracker, Statement, StatementEntry, UnitChargeRecord)


def reachable(start: object) -> list[object]:
    """The objects of the kinds in SECRETS to which references lead, through closures but not through modules."""
    seen, waiting, found = {id(start)}, [start], []
    kept = []  # so that no id is used twice
    while waiting:
        one = waiting.pop()
        kept.append(one)
        if isinstance(one, SECRETS):
            found.append(one)
        if isinstance(one, FunctionType):
            following: list[Any] = [one.__closure__, one.__defaults__, one.__kwdefaults__, one.__dict__]
        else:
            following = gc.get_referents(one)
        for each in following:
            if id(each) not in seen and not isinstance(each, ModuleType | type | FrameType | BuiltinFunctionType):
                seen.add(id(each))
                waiting.append(each)
    return found


def used(folder: Path) -> dpnb.Session:
    session = opened(TABLE_B, folder / "people.dpnb")
    first(session)
    session.frame.count().release(mu="0.5")
    made(folder / "people.dpnb", TABLE_B, folder)
    faces(session, folder / "people.dpnb")
    return session


def test_no_reference_leads_from_a_session_to_a_tracker(tmp_path: Path) -> None:
    session = used(tmp_path)
    assert reachable(session) == []
    answer = session.frame.count().release(mu="0.5")
    assert reachable(answer) == []


def test_control_a_session_that_keeps_a_tracker_is_caught(tmp_path: Path) -> None:
    session = used(tmp_path)
    tracker = UnitTracker(1)
    session._core.individuals._kept = lambda: tracker  # type: ignore[union-attr]
    assert reachable(session) == [tracker, tracker._tracker]


# --- what a process has loaded, and where a statement is refused ------------------------------------------------------

USE = """
import sys, pathlib
from core.people import *
session, _, _ = curator(pathlib.Path(sys.argv[1]), "skip")
ask_all(session)
str(session), session._repr_html_(), session.explain(), session.log
{more}
print([name for name in sys.modules if name.startswith("dpnb.curator")])
"""


def loaded(folder: Path, more: str = "") -> str:
    folder.mkdir()
    command = [sys.executable, "-c", USE.format(more=more), str(folder)]
    done = subprocess.run(command, cwd=TESTS, check=True, timeout=LIMIT, capture_output=True, text=True)
    return done.stdout.splitlines()[-1]


@pytest.mark.waits
def test_a_session_never_loads_what_computes_a_statement(tmp_path: Path) -> None:
    assert loaded(tmp_path / "session") == "[]"
    assert "'dpnb.curator.personal_statement'" in loaded(tmp_path / "control", "import dpnb.curator.personal_statement")


def test_a_kernel_refuses_before_any_tracker_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = opened(TABLE_A, tmp_path / "people.dpnb")
    first(session)
    number: list[int] = []
    monkeypatch.setattr(
        "dpnb.curator.personal_statement.UnitTracker", lambda budget: number.append(1) or UnitTracker(budget)
    )
    made(tmp_path / "people.dpnb", TABLE_A, tmp_path)
    assert len(number) == 2, "outside a kernel one for each statement"
    monkeypatch.setenv("JPY_SESSION_NAME", os.fspath(tmp_path / "notebook.ipynb"))
    with pytest.raises(StatementError, match="must be run outside notebooks") as error:
        made(tmp_path / "people.dpnb", TABLE_A, tmp_path)
    assert len(number) == 2
    frame = error.value.__traceback__
    while frame is not None:
        assert not any(isinstance(value, SECRETS) for value in frame.tb_frame.f_locals.values())
        frame = frame.tb_next
