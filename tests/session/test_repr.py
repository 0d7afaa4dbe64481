"""The repr of every public object is a few lines, needs no file, and never raises."""

from __future__ import annotations

import builtins
import os
import sqlite3
from pathlib import Path
from typing import Any, NoReturn

import pytest

import dpnb
from contracts.interactive import opened
from dpnb.errors import DpnbError, LedgerError
from dpnb.ledger import Ledger
from dpnb.ledger.sqlite_file import SqliteFile

FEW = 12
"""Lines, of which an answer with several groups has one for each group."""


def public_objects(session: dpnb.Session) -> dict[str, Any]:
    frame = session.frame
    count, mean = frame.count(), frame["x"].mean()
    answer = count.release(mu="0.1")
    scan = session.above_threshold(10, name="scan", epsilon="0.1")
    steps = session.noise_reduction(frame["x"].sum(), initial_mu="0.05")
    steps.step()
    parts = session.partition("site")
    fit = frame.fit("x", on="site", family="linear", mu="0.05", steps=2, public_size=100)
    fit.step()
    return {
        "session": session,
        "sub-session": session.delegate(mu="0.1", name="sub"),
        "part": parts["a"],
        "frame": frame,
        "filtered frame": frame[frame["x"] > 1],
        "series": frame["x"],
        "condition": frame["x"] > 1,
        "groups": frame.groupby("site"),
        "grouped series": frame.groupby("site")["x"],
        "date parts": frame["x"].round().dt,
        "query": mean,
        "answer": answer,
        "grouped answer": frame.groupby("site").count().release(mu="0.1"),
        "arithmetic": answer / 2,
        "history": answer.history,
        "preview": mean.preview(mu="0.1"),
        "previews": mean.preview(),
        "explanation": mean.explain(),
        "budget": session.budget,
        "filter": session.filter,
        "odometer": session.odometer,
        "loss": session.spent,
        "ledger": session.ledger,
        "scan": scan,
        "comparison": scan.ask(count),
        "noise reduction": steps,
        "partition": parts,
        "descent": fit,
        "coefficients": fit.coefficients,
        "mechanisms": session.mechanisms,
    }


@pytest.fixture
def objects(tmp_path: Path) -> dict[str, Any]:
    return public_objects(opened(tmp_path))


def no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise AssertionError("a file was touched")

    for place, name in ((SqliteFile, "run"), (SqliteFile, "transaction"), (SqliteFile, "each"), (os, "stat"),
                        (builtins, "open"), (os, "open"), (sqlite3, "connect")):  # fmt: skip
        monkeypatch.setattr(place, name, refuse)


def shown(objects: dict[str, Any]) -> dict[str, str]:
    return {name: repr(one) for name, one in objects.items()}


def test_repr_touches_no_file_and_is_a_few_lines(objects: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        no_files(patch)
        told = shown(objects)
        with pytest.raises(AssertionError, match="a file was touched"):  # what is read for is what str shows
            str(objects["session"])
    assert {name: text for name, text in told.items() if not text or len(text.splitlines()) > FEW} == {}


def test_repr_stays_when_the_ledger_is_closed_and_when_its_file_is_gone(objects: dict[str, Any]) -> None:
    before, ledger = shown(objects), objects["ledger"]
    ledger.close()
    assert shown(objects) == before
    Path(ledger.path).unlink()
    assert shown(objects) == before
    with pytest.raises(LedgerError):
        str(objects["session"])


def test_repr_stays_when_mechanisms_are_closed(objects: dict[str, Any]) -> None:
    names = ("sub-session", "scan", "noise reduction", "partition", "descent", "part")
    before = shown(objects)
    for name in names:
        objects[name].close()
    after = shown(objects)
    assert {name: after[name] for name in names} == {name: before[name] for name in names}


def test_repr_of_what_was_never_initialised_names_its_class(objects: dict[str, Any]) -> None:
    for name, one in objects.items():
        if type(one).__module__.startswith("dpnb.") and not isinstance(one, dict):
            text = repr(object.__new__(type(one)))
            assert type(one).__name__ in text, name
            assert len(text.splitlines()) == 1, name


def test_a_terminal_shows_the_state_and_without_a_ledger_what_is_known(objects: dict[str, Any]) -> None:
    class Printer:
        def text(self, text: str) -> None:
            self.shown = text

    printer = Printer()
    for name in ("session", "sub-session", "part", "scan", "noise reduction", "descent", "mechanisms"):
        objects[name]._repr_pretty_(printer, cycle=False)
        assert printer.shown == str(objects[name])
    objects["ledger"].close()
    objects["session"]._repr_pretty_(printer, cycle=False)
    assert printer.shown.startswith(repr(objects["session"]) + "\nledger ")


def test_repr_of_a_ledger_is_its_path(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "a.dpnb", {"budget": "1"})
    assert repr(ledger) == f"<Ledger {str(tmp_path / 'a.dpnb')!r}>"
    ledger.close()
    assert repr(ledger) == f"<Ledger {str(tmp_path / 'a.dpnb')!r}>"
    assert issubclass(LedgerError, DpnbError)
