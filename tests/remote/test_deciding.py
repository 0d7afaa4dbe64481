"""The curator's commands about requests for budget, as they are typed."""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest

import dpnb
from dpnb.__main__ import main
from dpnb.remote import deciding
from dpnb.service.access.tokens import new_token
from dpnb.service.app import Service
from dpnb.service.configuration.parts import AmountSettings, DivisionSettings, PartSettings
from service.running import running
from service.served import open_people

HALF, SMALL = AmountSettings(Fraction(1, 2)), AmountSettings(Fraction(1, 100))
PARTS = DivisionSettings(
    "reserved", tuple(PartSettings("analyst", name, ceiling=HALF, cap=SMALL) for name in ("ana", "bob"))
)
pytestmark = pytest.mark.waits


class Terminal:
    """A service with pending requests, and a curator's terminal."""

    def __init__(self, address: str, session: Any, service: Service, capsys: pytest.CaptureFixture[str]) -> None:
        self.address, self.session, self.service, self._capsys = address, session, service, capsys

    def run(self, command: str, *arguments: str, code: int = 0) -> str:
        got = main([command, self.address, "people", *arguments])
        out, err = self._capsys.readouterr()
        assert got == code, (out, err)
        assert err.count("\n") <= 1
        return out + err

    def ask(self, mu: float, why: str = "for the report") -> str:
        return str(self.session.request_budget(self.session.frame.count(), mu=mu, why=why).number)

    @property
    def numbers(self) -> list[str]:
        """The numbers of the requests in the ledger of the service."""
        return [str(one) for one in self.tree.budget_requests()]

    @property
    def tree(self) -> Any:
        return self.service.tables["people"].table.session._core.account.tree


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Terminal]:
    with tempfile.TemporaryDirectory(prefix="dpnb-") as short:
        folder = Path(short)
        session = open_people(folder / "people.dpnb", budget=dpnb.Budget.gdp(1), not_private_test_seed=26)
        ana, carl = new_token(folder / "tokens.json", "ana"), new_token(folder / "tokens.json", "carl", role="curator")
        with running(folder, session, PARTS) as (address, service):
            monkeypatch.setenv("DPNB_SERVICE", address)
            monkeypatch.setenv("DPNB_TOKEN", carl)
            remote = dpnb.connect(address, "people", token=ana)
            with closing(remote):
                yield Terminal(address, remote, service, capsys)


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Let the terminal answer."""
    stdin = io.StringIO(text)
    monkeypatch.setattr(stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", stdin)


def test_requests_shows_parts_and_what_is_to_be_decided(terminal: Terminal) -> None:
    terminal.ask(0.25, "a <b>bold</b> reason")
    shown = terminal.run("requests")
    assert "analyst ana: spent mu=0.0; ceiling mu=0.7071067811865475, cap mu=0.07071067811865475" in shown
    assert "of ana, " in shown
    assert "a <b>bold</b> reason" in shown
    assert "count of rows at mu=0.25: mu=0.25, ±" in shown
    assert "1 request to decide" in shown


def test_a_decision_is_confirmed_once(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal.ask(0.25)
    (number,) = terminal.numbers
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert "--yes: required" in terminal.run("approve", number, code=2)
    typed(monkeypatch, "no\n")
    assert "nothing was changed" in terminal.run("approve", number, code=2)
    assert terminal.tree.budget_requests()[int(number)].decision is None
    typed(monkeypatch, "y\n")
    shown = terminal.run("approve", number, "--mu", "0.1", "--until", "30d", "--why", "a start")
    assert shown.count("Approve it?") == 1
    assert shown.rstrip().endswith("a start")
    assert "approved in part by carl, mu=0.1 added to the cap until 20" in shown
    assert "the cap of ana is now mu=" in shown
    assert "must be that of a pending request" in terminal.run("approve", number, "--yes", code=2)


def test_what_was_shown_is_what_is_decided(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal.ask(0.25)
    terminal.ask(0.5)
    first, second = terminal.numbers
    state = deciding._state

    def swapped(channel: Any, table: str) -> Any:
        """A service that shows another request under the number."""
        shown = state(channel, table)
        one, two = shown.requests[:2]
        other = msgspec.structs.replace(two, number=one.number)
        return msgspec.structs.replace(shown, requests=(other,))

    monkeypatch.setattr(deciding, "_state", swapped)
    assert "digest: must be that of request" in terminal.run("approve", first, "--yes", code=2)
    monkeypatch.undo()
    assert all(one.decision is None for one in terminal.tree.budget_requests().values())
    assert second in terminal.numbers


def test_decline_grant_revoke_and_restore(terminal: Terminal) -> None:
    terminal.ask(0.25)
    (number,) = terminal.numbers
    assert "declined by carl: not now" in terminal.run("decline", number, "--yes", "--why", "not now")
    assert "0 requests to decide" in terminal.run("requests")
    assert "analyst ana: spent mu=0.0; ceiling mu=0.7071067811865475, cap mu=0.3" in terminal.run(
        "grant", "--analyst", "ana", "--mu", "0.3"
    )
    assert "cap mu=0.5" in terminal.run("grant", "--analyst", "ana", "--share", "1/2")
    assert "ana: spent mu=0.0; ceiling mu=0.7071067811865475\n" in terminal.run("grant", "--analyst", "ana", "--no-cap")
    assert "revoked" in terminal.run("revoke", "--analyst", "bob")
    assert "revoked" not in terminal.run("restore", "--analyst", "bob")


def test_what_cannot_be_done_names_the_remedy(terminal: Terminal) -> None:
    terminal.ask(0.25)
    (number,) = terminal.numbers
    for arguments, words in (
        (["grant", "--analyst", "ana"], "give a cap"),
        (["grant", "--analyst", "ana", "--mu", "0.1", "--no-cap"], "give a cap"),
        (["grant", "--analyst", "eve", "--mu", "0.1"], "must have a part of the budget"),
        (["grant", "--analyst", "ana", "--mu", "ten"], "mu: must be a decimal"),
        (["approve", number, "--yes", "--until", "yesterday"], "--until: must be a period or a date"),
        (["approve", number, "--yes", "--until", "2020-01-01"], "--until: must be in the future"),
        (["approve", number, "--yes", "--mu", "0.5"], "must be a part of what was requested"),
        (["approve", "77", "--yes"], "must be that of a pending request"),
    ):
        command, *rest = arguments
        assert words in terminal.run(command, *rest, code=2), arguments


def test_an_analyst_cannot_decide(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal.ask(0.25)
    (number,) = terminal.numbers
    folder = Path(terminal.address.removeprefix("unix://")).parent
    monkeypatch.setenv("DPNB_TOKEN", new_token(folder / "tokens.json", "eve"))
    assert "must have the role" in terminal.run("approve", number, "--yes", code=2)
