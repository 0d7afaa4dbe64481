"""marimo and Voilà: the picker as a widget, and refusals without internals."""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import dpnb
from dpnb._core import open_sessions
from dpnb.errors import BudgetExceeded, DpnbError
from dpnb.notebook import cell_context, extension, in_marimo, picker
from dpnb.notebook.picker import Picker
from dpnb.query.query import Query


@pytest.fixture
def frame() -> Any:
    arguments: dict[str, Any] = {"budget": dpnb.Budget.gdp(1), "schema": {"age": dpnb.Bounded(0, 99)}}
    return dpnb.Session.rehearse(name="m", public_size=1000, **arguments).frame


@pytest.fixture
def marimo(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    fake = SimpleNamespace(running_in_notebook=lambda: True)
    monkeypatch.setitem(sys.modules, "marimo", fake)
    yield fake
    open_sessions.unsubscribe(picker.follow)
    for kind, name in ((Query, "_display_"), (DpnbError, "__traceback__")):
        if name in vars(kind):
            delattr(kind, name)


def refused(frame: Any) -> list[str]:
    """The files of the frames that marimo prints of a refusal."""
    try:
        frame.count().release(mu=50)
    except BudgetExceeded as error:
        return [frame.filename for frame in traceback.TracebackException(type(error), error, error.__traceback__).stack]
    raise AssertionError


def test_marimo_shows_the_picker_which_releases(frame: Any, marimo: SimpleNamespace) -> None:
    in_marimo.install()
    query = frame.count()
    picker = query._display_()
    assert isinstance(picker, Picker)
    target = picker.state["options"][5]["target"]
    content = {"method": "release", "target": target, "id": "1", "confirmed": True}
    picker._on_message(picker, content, None)
    assert picker.state["phase"] == "answered"
    assert query.answer.total_loss.mu > 0


def test_a_picker_in_marimo_follows_the_budget(frame: Any, marimo: SimpleNamespace) -> None:
    in_marimo.install()
    picker = frame.count()._display_()
    frame["age"].mean().release(mu=0.1)
    assert picker.is_stale


def test_a_refusal_in_marimo_shows_no_frame_of_dpnb(frame: Any, marimo: SimpleNamespace) -> None:
    assert len(refused(frame)) > 1  # the control
    in_marimo.install()
    assert refused(frame) == [__file__]


def test_marimo_as_a_library_changes_nothing(frame: Any, marimo: SimpleNamespace) -> None:
    marimo.running_in_notebook = lambda: False
    in_marimo.install()
    assert not hasattr(Query, "_display_")
    assert len(refused(frame)) > 1


def test_marimo_needs_no_ipython() -> None:
    code = """
import sys, types
sys.modules["marimo"] = marimo = types.ModuleType("marimo")
marimo.running_in_notebook = lambda: False
sys.modules["IPython"] = None  # its import fails
import dpnb
print(dpnb.notebook.in_marimo.__name__)
"""
    shown = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert shown.strip() == "dpnb.notebook.in_marimo"


def test_a_page_of_voila_shows_widgets_and_the_message_of_a_refusal(
    frame: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not cell_context.has_live_widgets()
    shown: list[dict[str, str]] = []
    monkeypatch.setenv(cell_context.VOILA, "http://127.0.0.1/")
    monkeypatch.setattr(extension, "display", lambda bundle, raw: shown.append(bundle))
    assert cell_context.has_live_widgets()
    assert not cell_context.is_front_end_unknown()
    with pytest.raises(BudgetExceeded) as error:
        frame.count().release(mu=50)
    extension.explain_error(SimpleNamespace(error_in_exec=error.value))
    assert "nothing was charged" in shown[0]["text/html"]
    assert "panel" not in shown[0]["text/html"]
