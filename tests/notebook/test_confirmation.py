"""A release by mouse or magic that takes much of what is left is confirmed once; code is never interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets import TraitError
from traitlets.config import Config

import dpnb
from dpnb.errors import BudgetExceeded, ConfirmationRequired, RequestError
from dpnb.notebook import picker_state
from dpnb.notebook import picker_steps as confirmation
from dpnb.notebook.picker import Picker

SCHEMA = {"x": dpnb.Bounded(0, 5), "g": dpnb.Categories(["a", "b"])}
TABLE = pd.DataFrame({"x": [1.0, 2.0] * 500, "g": ["a", "b"] * 500})


@pytest.fixture
def session(tmp_path: Path) -> dpnb.Session:
    return dpnb.Session(TABLE, name="t", budget=dpnb.Budget.gdp(1), schema=SCHEMA, ledger=tmp_path / "t.dpnb")


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session: dpnb.Session) -> Iterator[InteractiveShell]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    quiet = Config()
    quiet.HistoryManager.enabled = False
    shell = InteractiveShell(config=quiet)
    try:
        dpnb.load_ipython_extension(shell)
        shell.user_ns["s"] = session
        monkeypatch.setattr(confirmation, "get_ipython", lambda: shell)
        yield shell
    finally:
        shell.configurables.clear()


def run(shell: InteractiveShell, source: str) -> object:
    with capture_output():
        result = shell.run_cell(source)
    result.raise_error()
    return result.result


def test_magic_refuses_a_large_cost_once_and_names_the_flag(shell: InteractiveShell, session: dpnb.Session) -> None:
    cell = "%%dpnb share=0.3{}\ns.frame['x'].sum()"
    with pytest.raises(
        ConfirmationRequired, match=r"takes 30\.0% of what is left.* 20%.* write %%dpnb share=0\.3 --yes"
    ):
        run(shell, cell.format(""))
    assert session.headroom == 1
    answer = run(shell, cell.format(" --yes"))
    assert session.headroom == pytest.approx(0.7)
    again = run(shell, cell.format(""))
    assert again.estimate == answer.estimate, "what is known is free, and is never confirmed: Run All does not stop"
    assert session.headroom == pytest.approx(0.7)


def test_flag_may_stand_first_and_is_not_an_argument(shell: InteractiveShell, session: dpnb.Session) -> None:
    run(shell, "%%dpnb --yes share=0.5\ns.frame.count()")
    assert session.headroom == pytest.approx(0.5)
    for line in ("--yes=1", "--yes --yes share=0.1"):
        with pytest.raises(RequestError):
            run(shell, f"%%dpnb {line}\ns.frame.count()")


def test_small_costs_and_refusals_are_unchanged(shell: InteractiveShell, session: dpnb.Session) -> None:
    run(shell, "%%dpnb share=0.2\ns.frame.count()")
    assert session.headroom == pytest.approx(0.8)
    with pytest.raises(BudgetExceeded):
        run(shell, "%%dpnb mu=3\ns.frame['x'].sum()")
    with pytest.raises(RequestError, match="share"):
        run(shell, "%%dpnb share=3\ns.frame['x'].sum()")


def test_limit_is_a_setting_of_the_kernel(shell: InteractiveShell, session: dpnb.Session) -> None:
    run(shell, "%config DpnbMagics.confirm_above = 0.05")
    with pytest.raises(ConfirmationRequired, match="more than 5% must"):
        run(shell, "%%dpnb share=0.1\ns.frame.count()")
    options = picker_state.make_state(session.frame.count()).options
    assert [one.confirm is not None for one in options] == [1 - one.remaining > 0.05 for one in options]
    run(shell, "%config DpnbMagics.confirm_above = 1")
    assert {one.confirm for one in picker_state.make_state(session.frame.count()).options} == {None}
    with pytest.raises(TraitError):
        shell.magics_manager.registry["DpnbMagics"].confirm_above = 2


def test_options_above_a_fifth_of_what_is_left_are_confirmed(session: dpnb.Session) -> None:
    session.frame["x"].sum().release(share=0.5)
    state = picker_state.make_state(session.frame.count())
    shares = [(0.5 - one.remaining) / 0.5 for one in state.options]
    assert [one.confirm is not None for one in state.options] == [share > 0.2 for share in shares]
    assert state.options[-1].confirm == "Release for 100.0% of what is left?"
    session.frame["x"].mean().release(share=0.9)  # code is not interrupted
    assert session.headroom == pytest.approx(0.05)


def test_kernel_refuses_what_the_page_did_not_confirm_because_it_knew_an_earlier_budget(session: dpnb.Session) -> None:
    query = session.frame.count()
    picker = Picker(query)
    option = next(one for one in reversed(picker.state["options"]) if one["confirm"] is None)
    session.frame["x"].sum().release(share=0.8)  # another kernel
    before = session.headroom
    message = {"method": "release", "target": option["target"], "id": "1"}
    picker._on_message(picker, message, None)
    assert picker.state["refusal"]["explanation"] == "confirmation-required"
    assert (session.headroom, picker.state["completed_request"]) == (before, "1")
    for request in ("2", "3"):  # a double click on Confirm is one charge
        picker._on_message(picker, {**message, "id": request, "confirmed": True}, None)
    assert picker.state["phase"] == "answered"
    assert len(session.log) == 2
