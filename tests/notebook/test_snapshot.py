"""Every session of the process is told, also beside one whose ledger is gone."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pandas as pd
import pytest

import dpnb
from dpnb._browser.snapshot import SessionSnapshot
from dpnb._core import open_sessions
from dpnb.notebook import extension, panel, widgets
from dpnb.notebook import panel as snapshots
from dpnb.notebook.panel import Panel
from dpnb.session import snapshot


@pytest.fixture
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[dpnb.Session, dpnb.Session]:
    monkeypatch.setattr(open_sessions, "_sessions", [])
    made = [
        dpnb.Session(
            pd.DataFrame({"x": [1.0, 2.0]}),
            name=name,
            budget=dpnb.Budget.gdp(1),
            schema={"x": dpnb.Bounded(0, 5)},
            ledger=tmp_path / f"{name}.dpnb",
        )
        for name in ("healthy", "broken")
    ]
    return made[0], made[1]


def test_session_without_a_ledger_is_told_as_such_and_hides_no_other(
    sessions: tuple[dpnb.Session, dpnb.Session],
) -> None:
    sessions[1].ledger.close()
    told = {one.name: one for one in snapshots.sessions()}
    assert told["healthy"].headlines[0].text == "100.0% left"
    assert told["broken"].notice.startswith("UNKNOWN: ledger")
    assert told["broken"].gauges == [], "no figure that might be wrong"
    assert msgspec.convert(msgspec.to_builtins(told["broken"]), SessionSnapshot) == told["broken"]


@pytest.mark.parametrize("sender", ["panel", "gauges"])
def test_filters_are_compared_while_a_page_shows_them(
    sessions: tuple[dpnb.Session, dpnb.Session], sender: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "_compared", set())
    healthy, _ = sessions
    healthy.frame.count().release(mu=0.5)

    def send(*, is_shown: bool) -> None:
        message = {"method": "compare", "session": healthy.id, "is_shown": is_shown}
        if sender == "panel":
            extension._on_request(msgspec.convert(message, panel.PanelRequest))
        else:
            widgets._on_message(widgets.gauges(snapshot.snapshot(healthy)), message, None)

    def shown() -> dict[str, SessionSnapshot]:
        return {one.name: one for one in snapshots.sessions()}

    before = shown()
    send(is_shown=True)
    after = shown()
    assert after["healthy"] == snapshot.snapshot(healthy, compared=True)
    assert (before["healthy"].is_compared, after["healthy"].is_compared) == (False, True)
    assert [len(one["healthy"].odometers) > 1 for one in (before, after)] == [False, True]
    assert before["healthy"].filters == after["healthy"].filters[:1]
    assert before["healthy"].odometers == after["healthy"].odometers[:1]
    assert after["broken"] == before["broken"], "of this session alone"
    send(is_shown=False)
    assert shown() == before


def test_rows_of_a_log_are_told_in_parts_and_of_an_unknown_session_none(
    sessions: tuple[dpnb.Session, dpnb.Session],
) -> None:
    healthy, _ = sessions
    for number in range(5):
        healthy.frame[healthy.frame["x"] > number].count().release(mu=0.01)
    total, rows = snapshots.log(healthy.id, 2, 2)
    assert (total, [row.id for row in rows]) == (5, [3, 4])
    assert snapshots.log("unheard of", 0, 10) == (0, [])


def test_one_widgets_trouble_is_not_the_next_ones() -> None:
    heard: list[str] = []

    def broken(_: object) -> None:
        raise ValueError("broken")

    panel = Panel(lambda answer: lambda message: None)
    panel.on_flush(broken)
    panel.on_flush(lambda _: heard.append("second"))
    panel.install(list)
    assert heard == ["second"]
