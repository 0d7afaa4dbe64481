"""The curator's command about people, as it is typed."""

from __future__ import annotations

from contextlib import closing

import pytest

import dpnb
from dpnb.__main__ import main
from dpnb.errors import DpnbError
from remote.test_deciding import Terminal, terminal, typed

__all__ = ["terminal"]
pytestmark = pytest.mark.waits


def run(terminal: Terminal, action: str, *arguments: str, code: int = 0) -> tuple[str, str]:
    got = main(["people", action, terminal.address, "people", *arguments])
    out, err = terminal._capsys.readouterr()
    assert got == code, (out, err)
    return out.strip(), err


def test_people_come_and_go_in_a_terminal(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(terminal, "list")[0].splitlines() == [
        "analyst ana: at most mu=0.7071067811865475; unused",
        "analyst bob: at most mu=0.7071067811865475; unused",
        "0.0% of the budget is left for other parts",
    ]
    typed(monkeypatch, "n\n")
    assert "nothing was changed" in run(terminal, "hand-over", "bob", "--to", "dora", code=2)[1]
    token, shown = run(terminal, "hand-over", "bob", "--to", "dora", "--yes")
    assert "dora then has the ceiling of bob" in shown
    assert "not shown again" in shown
    with closing(dpnb.connect(terminal.address, "people", token=token)) as dora:
        dora.frame.count().release(mu=0.05)
        assert run(terminal, "remove", "dora", "--yes")[0].splitlines()[1].endswith("spent; removed")
        with pytest.raises(DpnbError):
            dora.frame["age"].sum().release(mu=0.05)
    assert "row 9 was" in run(terminal, "hand-over", "dora", "--to", "bob", "--yes", code=2)[1]
    again, _ = run(terminal, "add", "dora", "--yes")
    with closing(dpnb.connect(terminal.address, "people", token=again)) as dora:
        dora.frame["age"].sum().release(mu=0.05)
    assert "add up to at most" in run(terminal, "add", "ed", "--share", "0.1", "--yes", code=2)[1]
    out, _ = run(terminal, "hand-over", "ana", "--to", "ed", "--no-token", "--yes")
    assert "analyst ed: at most mu=0.7071067811865475; unused" in out
