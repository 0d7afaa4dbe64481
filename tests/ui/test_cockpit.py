"""The Lab around a real session: gauges, timeline, log, badges, explanations; what is seen is what the session says."""

from __future__ import annotations

import csv
import io
import math
import re

import pytest
from playwright.sync_api import Locator, expect

from ui.accessible import serious_problems
from ui.conftest import CELL
from ui.lab import HOLD, THEMES, Lab, expect_reading


def left(lab: Lab) -> str:
    """What the session says is left, in the words of the gauges."""
    headroom = float(str(lab.value("session.headroom")))
    return f"{math.floor(1000 * headroom) / 10:.1f}% left"


def expect_agreement(lab: Lab) -> None:
    words = left(lab)
    for gauge in (lab.cell_gauge("headroom"), lab.panel_gauge("headroom")):
        expect_reading(gauge, words)
    expect(lab.status).to_have_text(f"dpnb {words}")


def badge(lab: Lab, name: str) -> Locator:
    return lab.page.locator(".jp-Cell").nth(CELL[name]).locator(".dpnb-badge")


def log(lab: Lab) -> list[str]:
    """The questions in the panel's log, from top to bottom."""
    return lab.panel.locator(".dpnb-release .dpnb-release-query").all_text_contents()


def spend(lab: Lab, times: int = 6) -> None:
    """Some questions from the spare cell: each costs more than the one before."""
    lab.write(
        CELL["spare"],
        f"for i in range({times}):\n    hie[hie['mdvis'] > i].count().release(mu=0.02 * (i + 1))",
    )
    lab.run(CELL["spare"])
    expect(lab.panel.locator(".dpnb-release")).to_have_count(times)


# --- gauges and timeline ----------------------------------------------------------------------------------------------


def test_everything_says_what_the_session_says_also_of_a_refusal_and_after_many_quick_releases(cockpit: Lab) -> None:
    expect_agreement(cockpit)
    for place in cockpit.places:
        expect(place.locator(".dpnb-next")).to_contain_text("df = session.frame")
    cockpit.run(CELL["release"])
    expect_agreement(cockpit)
    assert left(cockpit) != "100.0% left"
    for place in cockpit.places:
        expect(place.locator(".dpnb-next")).not_to_be_visible()

    before = cockpit.value("session.headroom")
    cockpit.run(CELL["refused"])
    refusal = cockpit.panel.locator(".dpnb-refusal")
    expect(refusal).to_have_count(1)
    expect(refusal).to_contain_text("the largest that fits")
    cockpit.page.evaluate("() => window.jupyterapp.shell.collapseRight()")
    outputs = cockpit.page.locator(".jp-Cell").nth(CELL["refused"]).locator(".jp-OutputArea")
    expect(outputs).to_contain_text("nothing was charged and the session continues")
    expect(outputs).not_to_contain_text("a cheaper query may still fit")  # once, in the panel
    outputs.locator("a[href='#dpnb-explain-budget-exceeded']").click()
    sentence = cockpit.panel.locator(".dpnb-explanation[data-explanation=budget-exceeded]")
    expect(sentence).to_be_in_viewport()
    expect(sentence).to_contain_text("The filter refuses every request with which all answers together would exceed")
    assert cockpit.value("session.headroom") == before
    cockpit.screenshot("refused")

    cockpit.page.evaluate("() => window.jupyterapp.shell.activateById('dpnb:ledger-panel')")
    cockpit.write(
        CELL["spare"],
        "quick = dpnb.Session(pd.DataFrame({'x': [1.0, 2.0]}), name='quick', ledger=':memory:',\n"
        "    budget=dpnb.Budget.gdp(1), schema={'x': dpnb.Bounded(0, 1)})\n"
        "for i in range(500):\n    quick.frame[quick.frame['x'] > i / 500].count().release(mu=0.02)",
    )
    cockpit.run(CELL["spare"])
    words = "80.0% left"
    assert cockpit.value("(len(quick.log), quick.headroom)") == (500, 0.8)
    expect_reading(cockpit.panel_gauge("headroom"), words)
    expect(cockpit.status).to_have_text(f"dpnb {words}")
    expect(cockpit.panel.locator(".dpnb-release").first).to_contain_text("500")
    steps = cockpit.panel.locator(".dpnb-timeline-steps").first
    expect(steps).to_be_visible()


# --- the log ----------------------------------------------------------------------------------------------------------


def test_timeline_and_log_show_each_question_and_lead_to_its_cell(cockpit: Lab) -> None:
    spend(cockpit)
    expect_timeline_on_hover_and_by_keyboard(cockpit)
    cockpit.run(CELL["release"])
    row = cockpit.panel.locator(".dpnb-release").first
    expect(row.locator(".dpnb-release-cost")).to_have_text("1.3% of the budget (mu 0.05)")
    error = str(cockpit.value("session.log['error'].iloc[-1]"))
    expect(row.locator(".dpnb-release-error")).to_contain_text(error)
    estimate = str(cockpit.value("session.log['estimate'].iloc[-1]"))
    expect(row.locator(".dpnb-release-estimate")).to_have_text(estimate)
    cockpit.page.evaluate("() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 0; }")
    row.locator(".dpnb-release-jump").click()
    cockpit.page.wait_for_function(
        "at => window.jupyterapp.shell.currentWidget.content.activeCellIndex === at", arg=CELL["release"]
    )
    expect(cockpit.panel.locator(".dpnb-release")).to_have_count(7)
    assert "sum of mdvis" in log(cockpit)[0]
    sort = cockpit.panel.locator(".dpnb-log-sort").first
    sort.select_option(label="Most expensive first")
    assert "mdvis above 5" in log(cockpit)[0]
    sort.select_option(label="Oldest first")
    assert "mdvis above 0" in log(cockpit)[0]
    cockpit.panel.locator(".dpnb-log-filter").first.fill("sum")
    expect(cockpit.panel.locator(".dpnb-release")).to_have_count(1)
    cockpit.panel.locator(".dpnb-log-filter").first.fill("")
    expect(cockpit.panel.locator(".dpnb-release")).to_have_count(7)


def expect_timeline_on_hover_and_by_keyboard(cockpit: Lab) -> None:
    timeline = cockpit.panel.locator(".dpnb-timeline").first
    expect(timeline.locator(".dpnb-timeline-steps")).to_be_visible()
    cockpit.panel.locator(".dpnb-accounting > summary").first.click()
    odometers = cockpit.panel.locator(".dpnb-accounting .dpnb-timeline").first
    expect(odometers.locator(".dpnb-timeline-curve").nth(2)).to_be_attached()  # counted when the fold was opened
    expect(odometers.locator(".dpnb-timeline-limit")).to_have_attribute("d", "")  # not compared with epsilon
    timeline.get_by_role("slider").focus()
    cockpit.page.keyboard.press("End")
    tip = timeline.locator(".dpnb-timeline-tip").first
    expect(tip).to_contain_text("6. count of rows where mdvis above 5")
    cockpit.page.keyboard.press("ArrowLeft")
    expect(tip).to_contain_text("5. count of rows where mdvis above 4")
    timeline.scroll_into_view_if_needed()
    box = timeline.locator("svg").first.bounding_box()
    assert box is not None
    cockpit.page.mouse.move(box["x"] + box["width"] - 4, box["y"] + box["height"] / 2)
    expect(tip).to_contain_text("6. count of rows")
    cockpit.screenshot("timeline")


# --- badges -----------------------------------------------------------------------------------------------------------


def test_menu_and_badge_lead_to_the_log_a_second_run_changes_no_badge_the_palette_has_all_and_nothing_is_cut_off(
    cockpit: Lab,
) -> None:
    cockpit.run(CELL["release"])

    def choose(label: str) -> None:
        cockpit.page.locator(".lm-MenuBar-item", has_text="View").click()
        cockpit.page.locator(".lm-Menu-item", has_text="Private Analysis").hover()
        cockpit.page.locator(".lm-Menu-item", has_text=label).click()

    choose("Show the Log of Releases")
    expect(cockpit.panel.locator(".dpnb-releases")).to_be_focused()
    choose("Show the Budget over Time")
    expect(cockpit.panel.get_by_role("slider")).to_be_focused()

    expect(badge(cockpit, "release")).to_have_text("1.3% of the budget")
    cockpit.run(CELL["release"])
    expect(badge(cockpit, "release")).to_have_text("1.3% of the budget")
    cockpit.write(CELL["release"], "hie['mdvis'].sum().release(mu=0.1)")
    cockpit.run(CELL["release"])
    expect(badge(cockpit, "release")).to_have_text("5.0% of the budget")
    cockpit.page.evaluate("() => window.jupyterapp.shell.collapseRight()")
    expect(cockpit.panel).not_to_be_visible()
    badge(cockpit, "release").click()
    expect(cockpit.panel).to_be_visible()
    expect(cockpit.panel.locator(".dpnb-release").first).to_contain_text("sum of mdvis")

    cockpit.page.evaluate("() => void window.jupyterapp.commands.execute('apputils:activate-command-palette')")
    search = cockpit.page.locator("#modal-command-palette input, #command-palette input").first
    search.fill("private analysis")
    palette = cockpit.page.locator(".lm-CommandPalette")
    for label in (
        "New Private Analysis",
        "Show the Privacy Budget",
        "Show the Budget over Time",
        "Show the Log of Releases",
        "Export the Log of Releases as CSV",
        "Go to the Cell of the Last Release",
        "Show or Hide Cost Badges",
        "Explain Refusals and Warnings",
    ):
        expect(palette.get_by_text(label)).to_be_visible()
    cockpit.page.keyboard.press("Escape")
    expect(palette).not_to_be_visible()

    cockpit.resize(1280, 800)
    expect_whole_badge(cockpit, 1280)
    cockpit.resize_without_panels(700, 800)
    expect_whole_badge(cockpit, 700)


def expect_whole_badge(cockpit: Lab, width: int) -> None:
    shown = badge(cockpit, "release")
    shown.scroll_into_view_if_needed()
    for part in (shown, shown.locator(".dpnb-badge-line")):
        assert part.evaluate("node => node.scrollWidth <= node.clientWidth || node.clientWidth === 0")
        assert part.evaluate("node => node.scrollHeight <= node.clientHeight || node.clientHeight === 0")
    box, text = shown.bounding_box(), shown.locator(".dpnb-badge-line").bounding_box()
    assert box is not None
    assert text is not None
    assert box["x"] <= text["x"]
    assert text["x"] + text["width"] <= box["x"] + box["width"]
    output = cockpit.page.locator(".jp-Cell").nth(CELL["release"]).locator(".jp-Cell-outputWrapper").bounding_box()
    assert output is not None
    assert box["y"] + box["height"] <= output["y"] + 1, "it reaches into the output"
    cockpit.screenshot(f"badge-{width}")


# --- kernels ----------------------------------------------------------------------------------------------------------


def test_restart_and_run_all_spends_nothing_and_shows_the_same(cockpit: Lab) -> None:
    cockpit.run_all_but_errors(CELL["refused"])
    before, spent = left(cockpit), cockpit.value("session.spent.mu")
    cockpit.restart()
    expect(cockpit.panel).to_contain_text("restarted")
    cockpit.run_all_but_errors(CELL["refused"])
    assert cockpit.value("session.spent.mu") == spent
    assert left(cockpit) == before
    expect_agreement(cockpit)
    expect(badge(cockpit, "release")).to_have_text("1.3% of the budget")


def test_two_notebooks_on_one_kernel_show_the_same_and_of_two_sessions_the_one_in_use_is_first(cockpit: Lab) -> None:
    cockpit.run(CELL["release"])
    words = left(cockpit)
    cockpit.open_on_the_same_kernel("other.ipynb")
    expect_reading(cockpit.panel_gauge("headroom"), words)
    cockpit.write(0, "hie['mdvis'].sum().release(mu=0.2)")
    cockpit.run(0)
    later = left(cockpit)
    assert later != words
    expect_reading(cockpit.panel_gauge("headroom"), later)
    expect(cockpit.panel.locator(".dpnb-release")).to_have_count(2)
    cockpit.panel.locator(".dpnb-release-jump").last.click()
    cockpit.wait_until_in_front("cockpit.ipynb")
    expect_agreement(cockpit)
    cockpit.write(
        CELL["spare"],
        "rehearsal = dpnb.Session.rehearse(name='mock', budget=dpnb.Budget.gdp(1), schema={'x': dpnb.Bounded(0, 1)})\n"
        "rehearsal.frame.count().release(mu=0.1)",
    )
    cockpit.run(CELL["spare"])
    names = cockpit.panel.locator(".dpnb-session-name")
    expect(names).to_have_text(["mock", "rand-hie"])
    expect(badge(cockpit, "spare")).to_have_class(re.compile("dpnb-mod-not-private"))
    cockpit.write(CELL["release"], "hie['mdvis'].sum().release(mu=0.3)")
    cockpit.run(CELL["release"])
    expect(names).to_have_text(["rand-hie", "mock"])


def test_panel_says_that_the_kernel_is_running_and_everything_goes_on_moving_also_beside_a_console(
    cockpit: Lab,
) -> None:
    cockpit.write(CELL["spare"], f"{HOLD}hie.count_units().release(mu=0.1)\nhold()")
    with cockpit.running(CELL["spare"]):
        expect(cockpit.panel.locator(".dpnb-busy")).to_be_visible()
        for gauge in (cockpit.panel_gauge("headroom"), cockpit.cell_gauge("headroom")):
            expect(gauge).not_to_have_attribute("aria-valuetext", "100.0% left")
        expect(cockpit.status).not_to_have_text("dpnb 100.0% left")
        assert cockpit.is_running(), "the page was told only after the cell"
        cockpit.let_go()
    expect(cockpit.panel.locator(".dpnb-busy")).not_to_be_visible()
    expect_agreement(cockpit)
    words = left(cockpit)
    cockpit.open_console()
    expect_reading(cockpit.panel_gauge("headroom"), words)


# --- for everybody ----------------------------------------------------------------------------------------------------


def test_axe_finds_no_serious_problem_in_both_themes(cockpit: Lab) -> None:
    for name in ("question", "count", "release", "refused"):
        cockpit.run(CELL[name])
    picker = cockpit.page.locator(".jp-Cell").nth(CELL["count"]).locator(".dpnb-picker")
    picker.get_by_role("button", name="Release").click()
    expect(picker.locator(".dpnb-picker-answer")).to_contain_text("95% noise interval")
    cockpit.open_folds()
    ours = (".dpnb-panel", ".dpnb-picker", ".dpnb-badge", ".jp-OutputArea .dpnb-session", ".dpnb-status")
    for theme in THEMES:
        cockpit.set_theme(theme)
        cockpit.screenshot(f"axe-{theme.split()[-1].lower()}")
        assert serious_problems(cockpit.page, *ours, only_colours=theme != THEMES[-1]) == [], theme


def test_tile_of_the_launcher_makes_a_notebook_that_runs(lab: Lab) -> None:
    lab.open("cockpit.ipynb")
    lab.page.evaluate("cwd => void window.jupyterapp.commands.execute('launcher:create', { cwd })", lab.files.name)
    lab.page.locator(".jp-LauncherCard", has_text="Private analysis").click()
    lab.page.locator(".jp-Dialog button", has_text="Create").click()
    lab.wait_until_in_front("Untitled.ipynb")
    lab.wait_until_idle()
    lab.run_all()
    expect(lab.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .dpnb-picker")).to_be_visible()
    expect(lab.panel.get_by_role("alert")).to_contain_text("REHEARSAL")
    assert lab.value("session.name") == "rand-hie"
    lab.screenshot("launcher")


def test_the_example_of_the_launcher_gives_an_answer_by_mouse_alone(lab: Lab) -> None:
    lab.open("cockpit.ipynb")
    (lab.files / "empty").mkdir()
    cwd = f"{lab.files.name}/empty"
    lab.page.evaluate("cwd => void window.jupyterapp.commands.execute('launcher:create', { cwd })", cwd)
    lab.page.locator(".jp-LauncherCard", has_text="Private analysis").click()
    lab.wait_until_in_front("empty/Untitled.ipynb")
    lab.wait_until_idle()
    lab.run_all()
    shown = lab.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    expect(shown.locator(".jp-RenderedHTMLCommon table", has_text="whole number from 1952 to 2007")).to_be_visible()
    plot = shown.locator(".jp-CodeCell", has_text="query.answer.plot()")
    expect(plot.locator(".jp-OutputArea")).to_contain_text("Click Release above")
    shown.locator(".dpnb-picker button", has_text="Release").click()
    expect(shown.locator(".dpnb-picker-hint").first).to_contain_text("query.answer is this answer")
    plot.locator(".jp-InputPrompt").click()
    shown.locator(".jp-ToolbarButtonComponent[data-command='notebook:run-cell-and-select-next']").click()
    expect(plot.locator(".js-plotly-plot, svg.main-svg").first).to_be_visible()
    lab.screenshot("launcher-example")
    assert len(lab.value("query.answer.estimate.tolist()")) == 5


def test_export_holds_every_request_and_a_reload_keeps_badges_and_log_and_applies_a_setting(cockpit: Lab) -> None:
    spend(cockpit, times=8)
    cockpit.run(CELL["release"])
    expect(badge(cockpit, "release")).to_have_text("1.3% of the budget")
    expect(badge(cockpit, "count")).to_have_count(0)
    cell = cockpit.page.locator(".jp-Cell").nth(CELL["release"])
    box, editor = badge(cockpit, "release").bounding_box(), cell.locator(".jp-InputArea-editor").bounding_box()
    assert box is not None
    assert editor is not None
    assert box["x"] + box["width"] <= editor["x"] + 1, "the badge is in the margin"
    cockpit.write(
        CELL["spare"],
        "for i in range(60):\n    hie[hie['mdvis'] > i / 7 + 0.01].count().release(mu=0.001)",  # none is known already
    )
    cockpit.run(CELL["spare"])
    expected = cockpit.value("[(int(i), r.query, r.status) for i, r in session.log.iterrows()]")
    with cockpit.page.expect_download() as download:
        cockpit.panel.locator(".dpnb-log-export").first.click()
    assert download.value.suggested_filename == "rand-hie-log.csv"
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_text(encoding="utf-8-sig"))))
    assert sorted((int(row["id"]), row["query"], row["status"]) for row in rows) == expected
    estimates = cockpit.value("session.log['estimate'].tolist()")
    assert [row["estimate"] for row in sorted(rows, key=lambda row: int(row["id"]))] == estimates
    assert all(float(row["low"]) <= float(row["high"]) for row in rows)
    values = cockpit.value(
        "[float(f\"{r.estimate.split(' (')[0].replace(',', '')}\") for r in session.log.itertuples()]"
    )
    assert [float(row["value"]) for row in sorted(rows, key=lambda row: int(row["id"]))] == pytest.approx(
        values, abs=0.06 * max(float(row["high"]) - float(row["low"]) for row in rows)
    ), "to the digits that are shown"
    assert sum(float(row["mu"]) ** 2 for row in rows) == pytest.approx(
        float(str(cockpit.value("session.spent.mu"))) ** 2
    )

    words = left(cockpit)
    cockpit.set_setting("dpnb:status", "headline", "spent")  # saves, and loads the page again
    for gauge in (cockpit.cell_gauge("headroom"), cockpit.panel_gauge("headroom")):
        expect_reading(gauge, words)
    expect(cockpit.status).to_have_text(f"dpnb {100 - float(words.partition('%')[0]):.1f}% spent")
    expect(cockpit.panel).not_to_contain_text("Last known")
    expect(badge(cockpit, "release")).to_have_text("1.3% of the budget")
    expect(cockpit.panel.locator(".dpnb-release")).to_have_count(10)
    cockpit.panel.locator(".dpnb-log-all").click()
    expect(cockpit.panel.locator(".dpnb-release")).to_have_count(69)
    cockpit.shut_down()
    expect(cockpit.panel).to_contain_text("No running kernel")
    expect(badge(cockpit, "release")).to_have_text("1.3% of the budget")
    cockpit.save()
    assert (
        cockpit.notebook("cockpit.ipynb")["cells"][CELL["release"]]["metadata"]["dpnb"]["cost"] == "1.3% of the budget"
    )
