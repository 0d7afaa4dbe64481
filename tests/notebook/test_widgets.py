"""Facts about the live gauges, without a browser."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from dpnb._browser.snapshot import SessionSnapshot, Snapshot
from dpnb.notebook import panel, picker, widgets

FIXTURE = Path(__file__).parents[1] / "fixtures" / "snapshot.json"


@pytest.fixture
def session(request: pytest.FixtureRequest) -> SessionSnapshot:
    """The real session of the shared snapshot, under a name that no other test uses."""
    snapshot = msgspec.json.decode(FIXTURE.read_bytes(), type=Snapshot)
    return replace(snapshot.sessions[0], id=request.node.name)


def test_gauges_hold_the_session_without_its_log(session: SessionSnapshot) -> None:
    assert session.log
    assert widgets.gauges(session).state == msgspec.to_builtins(replace(session, log=[]))


def test_session_has_one_widget_however_often_it_is_shown(session: SessionSnapshot) -> None:
    first = widgets.gauges(session)
    moved = replace(session, spent="mu 0.2 of 0.2117")
    assert widgets.gauges(moved) is first
    assert first.state["spent"] == "mu 0.2 of 0.2117"


def test_gauges_follow_the_panel(session: SessionSnapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    local = panel.Panel(lambda answer: lambda message: None)
    monkeypatch.setattr(panel, "on_flush", local.on_flush)
    shown = widgets.gauges(session)
    local.install(lambda: [replace(session, spent="mu 0.2 of 0.2117"), replace(session, id="never shown")])
    assert shown.state["spent"] == "mu 0.2 of 0.2117"


def test_closed_gauges_are_replaced(session: SessionSnapshot) -> None:
    closed = widgets.gauges(session)
    closed.close()
    assert widgets.gauges(session) is not closed


def test_bundle_has_static_faces_beside_the_live_one(session: SessionSnapshot) -> None:
    bundle = widgets.mimebundle(session, text="83.3% left", html="<b>83.3% left</b>")
    assert bundle["text/plain"] == "83.3% left"
    assert bundle["text/html"] == "<b>83.3% left</b>"
    model = widgets.gauges(session).model_id
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == model
    assert bundle[widgets.LIVE] == {"model_id": model, "view": "gauges"}


def test_browser_knows_our_widgets_by_the_names_and_types_that_the_kernel_uses() -> None:
    source = Path(__file__).parents[2] / "labextension" / "src"
    assert f"'{widgets.LIVE}'" in (source / "live" / "liveOutput.ts").read_text(encoding="utf-8")
    start = re.search("MODULE_PREFIX = '(.*)'", (source / "live" / "liveWidgets.ts").read_text(encoding="utf-8"))
    assert start is not None
    for kind in (widgets.Gauges, picker.Picker):
        assert f"{kind.__module__}.{kind.__qualname__}".startswith(start[1])


def test_missing_build_is_said_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(widgets, "_STATIC", tmp_path)
    script = widgets.asset("gauges.js")
    assert isinstance(script, str)
    assert "pip install ." in script


def test_installed_package_has_the_built_gauges() -> None:
    assert "role" in str(widgets.Gauges._esm)
    assert ".dpnb-gauge" in str(widgets.Gauges._css)
