"""The budget picker, used as the analyst uses it: look, slide, release, refine, be refused."""

from __future__ import annotations

import math
import re

import pytest
from playwright.sync_api import Locator, expect

from ui.conftest import CELL, COCKPIT
from ui.lab import Lab

ELSEWHERE = "import pandas as pd, dpnb\nfrom importlib import resources\n" + COCKPIT["session"]
"""Another kernel's session on the same ledger."""


def picker(lab: Lab, name: str = "question") -> Locator:
    """The picker below one of the cells."""
    return lab.page.locator(".jp-Cell").nth(CELL[name]).locator(".dpnb-picker")


def slider(picker: Locator) -> Locator:
    return picker.get_by_role("slider")


def spent(lab: Lab) -> float:
    """What the session has spent, as it says itself."""
    return float(str(lab.value("session.spent.mu")))


def budget(picker: Locator) -> float:
    """The mu that the slider stands on."""
    words = re.fullmatch(r"mu (\S+)", picker.locator(".dpnb-picker-budget").text_content() or "")
    assert words is not None
    return float(words[1])


def test_question_shows_a_slider_whose_figures_are_those_of_a_preview(cockpit: Lab) -> None:
    cockpit.run(CELL["question"])
    shown = picker(cockpit)
    expect(slider(shown)).to_be_visible()
    slider(shown).press("End")
    expect(shown.locator(".dpnb-picker-budget")).to_have_text("the whole remaining budget")
    expect(shown.locator(".dpnb-picker-after")).to_have_text("0.0% left")
    for _ in range(10):
        slider(shown).press("ArrowLeft")
    mu = budget(shown)
    cost, headroom, error, times = cockpit.value(
        f"(lambda p: (p.cost_fraction, p.headroom_after, p.expected_error, p.max_repetitions))"
        f"(visits.preview(mu={mu!r}))"
    )  # type: ignore[misc]
    expect(shown.locator(".dpnb-picker-after")).to_have_text(f"{math.floor(1000 * headroom) / 10:.1f}% left")
    percent = re.search(r"([\d.]+)% of the budget", shown.locator(".dpnb-picker-cost").text_content() or "")
    assert percent is not None
    assert float(percent[1]) == pytest.approx(100 * cost, abs=0.01)
    words = re.match(r"± ([\d.]+) mdvis at 95%", shown.locator(".dpnb-picker-error").text_content() or "")
    assert words is not None
    assert float(words[1]) == pytest.approx(error, rel=0.06)
    expect(shown.locator(".dpnb-picker-times")).to_have_text(str(times - 1))
    assert spent(cockpit) == 0, "looking is free"


def test_presets_move_the_slider_and_the_keyboard_stays_in_the_picker(cockpit: Lab) -> None:
    cockpit.run(CELL["question"])
    shown = picker(cockpit)
    presets = {
        "glance": ("Rough estimate", 0.01),
        "talk": ("For a talk", 0.05),
        "print": ("For publication", 0.2),
    }
    for name, (label, share) in presets.items():
        button = shown.locator(f"[data-preset={name}]")
        expect(button).to_contain_text(label)
        expect(button).to_contain_text(f"{100 * share:g}% of what remains")
        button.click()
        expect(button).to_have_attribute("aria-pressed", "true")
        cost = float(str(cockpit.value(f"visits.preview(mu={budget(shown)!r}).cost_fraction")))
        assert 0.5 * share < cost <= share
    slider(shown).focus()
    cockpit.page.keyboard.press("Home")
    first = budget(shown)
    for key in ("ArrowRight", "ArrowUp", "PageUp"):
        cockpit.page.keyboard.press(key)
    assert budget(shown) > first
    expect(slider(shown)).to_be_focused()
    cockpit.page.keyboard.press("Home")
    cockpit.page.keyboard.press("Shift+Tab")
    cockpit.page.keyboard.press("Space")  # the preset before the slider
    expect(shown.locator(".dpnb-picker-preset[data-preset=print]")).to_have_attribute("aria-pressed", "true")


def test_keyboard_is_the_notebooks_after_a_release_by_mouse(cockpit: Lab) -> None:
    cockpit.run(CELL["question"])
    shown = picker(cockpit)
    shown.get_by_role("button", name="Release").click()
    expect(shown.locator(".dpnb-picker-answer")).to_be_focused()
    cells = cockpit.page.locator(".jp-Notebook:visible .jp-Cell")
    count = cells.count()
    cockpit.page.keyboard.press("b")  # command mode: a new cell below
    expect(cells).to_have_count(count + 1)
    shown.locator(".dpnb-picker-answer").click()
    cockpit.page.keyboard.press("Shift+Enter")  # run this cell again, and go to the next
    expect(shown.locator(".dpnb-picker-answer")).to_contain_text("95% interval")
    expect(cells.nth(CELL["question"] + 1)).to_have_class(re.compile("jp-mod-active"))


def test_inputs_keep_the_keys_that_are_typed_and_the_error_is_compared_with_ones_own_figure(cockpit: Lab) -> None:
    cockpit.run(CELL["count"])
    shown = picker(cockpit, "count")
    cells = cockpit.page.locator(".jp-Notebook:visible .jp-Cell")
    count = cells.count()
    expect(shown.locator(".dpnb-picker-share")).not_to_be_visible()
    shown.locator(".dpnb-picker-reference").click()
    cockpit.page.keyboard.type("1e3")
    expect(shown.locator(".dpnb-picker-reference")).to_have_value("1e3")
    shown.locator("[data-preset=glance]").focus()
    cockpit.page.keyboard.press("Enter")
    expect(shown.locator("[data-preset=glance]")).to_have_attribute("aria-pressed", "true")
    expect(cells).to_have_count(count)
    shown.locator(".dpnb-picker-reference").fill("6000")
    slider(shown).press("End")
    error = float(str(cockpit.value("hie.count_units().preview(share=1).expected_error")))
    expect(shown.locator(".dpnb-picker-share")).to_have_text(f"± {float(f'{100 * error / 6000:.2g}'):g}% of 6000")


def test_picker_is_inactive_after_a_restart_until_its_cell_is_run_again(cockpit: Lab) -> None:
    cockpit.run(CELL["question"])
    cockpit.run(CELL["count"])
    picker(cockpit).get_by_role("button", name="Release").click()
    expect(picker(cockpit).locator(".dpnb-picker-answer")).to_contain_text("95% interval")
    estimate = str(cockpit.value("f'{visits.best[0].estimate:.2f}'"))
    before = spent(cockpit)
    cockpit.restart()
    for name in ("question", "count"):
        old = picker(cockpit, name)
        expect(old.locator(".dpnb-picker-status")).to_contain_text("Run this cell again")
        expect(old).to_have_class(re.compile("dpnb-mod-inactive"))
        for button in old.get_by_role("button").all():
            expect(button).to_be_disabled()
    expect(picker(cockpit).locator(".dpnb-picker-answer")).to_contain_text("95% interval")
    cockpit.screenshot("picker-after-restart")
    for name in ("load", "session", "question", "count"):
        cockpit.run(CELL[name])
    expect(picker(cockpit, "count").get_by_role("button", name="Release")).to_be_enabled()
    expect(picker(cockpit).locator(".dpnb-picker-answer")).to_contain_text(estimate)
    expect(slider(picker(cockpit))).not_to_be_visible()
    expect(picker(cockpit).get_by_role("button", name="Refine…")).to_be_visible()
    assert spent(cockpit) == before


def test_release_replaces_the_picker_by_the_answer_and_charges_what_was_shown(cockpit: Lab) -> None:
    cockpit.run(CELL["question"])
    shown = picker(cockpit)
    shown.locator("[data-preset=print]").click()
    mu = budget(shown)
    cockpit.screenshot("picker")
    shown.get_by_role("button", name="Release").click()
    answer = shown.locator(".dpnb-picker-answer")
    expect(answer).to_contain_text("95% interval")
    expect(slider(shown)).not_to_be_visible()
    expect(answer).to_be_focused()
    expect(shown).to_contain_text(f".release(mu={mu!r})")
    assert spent(cockpit) == pytest.approx(mu)
    lowest = str(cockpit.value("f'{visits.best[95].estimate:.2f}'"))
    expect(answer).to_contain_text(lowest)
    headroom = float(str(cockpit.value("session.headroom")))
    expect(cockpit.status).to_have_text(f"dpnb {math.floor(1000 * headroom) / 10:.1f}% left")
    expect(cockpit.panel.locator(".dpnb-release").first).to_contain_text("mean of mdvis by coins")
    cockpit.screenshot("picker-answered")


def test_refining_pays_only_the_difference_and_the_code_gives_the_same_answer_free(cockpit: Lab) -> None:
    cockpit.run(CELL["question"])
    shown = picker(cockpit)
    shown.locator("[data-preset=talk]").click()
    shown.get_by_role("button", name="Release").click()
    shown.get_by_role("button", name="Refine…").click()
    expect(slider(shown)).to_be_focused()
    expect(shown.locator(".dpnb-picker-current")).to_contain_text("already")
    shown.locator("[data-preset=print]").click()
    mu = budget(shown)
    expect(shown.locator(".dpnb-picker-share")).to_contain_text("% of the current answer")
    shown.get_by_role("button", name="Refine", exact=True).click()
    expect(shown.locator(".dpnb-picker-answer")).to_contain_text("2 observations combined")
    expect(slider(shown)).not_to_be_visible()
    assert spent(cockpit) == pytest.approx(mu), "both looks together cost what the second was asked for"
    before = spent(cockpit)
    cockpit.write(CELL["spare"], f"visits.release(mu={mu!r})")
    cockpit.run(CELL["spare"])
    assert spent(cockpit) == before


def test_refused_release_says_why_and_the_picker_goes_on(cockpit: Lab) -> None:
    cockpit.run(CELL["question"])
    shown = picker(cockpit)
    slider(shown).press("End")
    slider(shown).press("ArrowLeft")
    wanted = budget(shown)
    cockpit.run_elsewhere(ELSEWHERE, "session.frame.count().release(share=0.6)")
    shown.get_by_role("button", name="Release").click()
    refusal = shown.locator(".dpnb-picker-refusal")
    expect(refusal).to_contain_text("the largest that fits is")
    expect(refusal).to_contain_text(f"requested mu={wanted!r}")
    assert budget(shown) < wanted, "the slider ends at what is left now"
    expect(shown.get_by_role("button", name="Release")).to_be_enabled()
    shown.locator("[data-preset=glance]").click()
    shown.get_by_role("button", name="Release").click()
    expect(shown.locator(".dpnb-picker-answer")).to_contain_text("95% interval")
    expect(refusal).not_to_be_visible()


def test_picker_in_sight_follows_what_other_cells_spend(cockpit: Lab) -> None:
    cockpit.run(CELL["question"])
    shown = picker(cockpit)
    slider(shown).press("End")
    cost = shown.locator(".dpnb-picker-cost")
    expect(cost).to_contain_text("100.00% of the budget")
    cockpit.run(CELL["release"])
    shown.scroll_into_view_if_needed()
    share = float(str(cockpit.value("visits.preview(share=1).cost_fraction")))
    assert 0.9 < share < 1
    expect(cost).to_contain_text(f"{math.ceil(10_000 * share) / 100:.2f}% of the budget")
    expect(shown.locator(".dpnb-picker-budget")).to_have_text("the whole remaining budget")


def test_saved_notebook_holds_the_preview_and_after_the_release_the_answer_which_a_reload_shows(cockpit: Lab) -> None:
    def saved() -> str:
        cockpit.save()
        cells = cockpit.notebook("cockpit.ipynb")["cells"]
        return "".join(cells[CELL["question"]]["outputs"][0]["data"]["text/html"])

    cockpit.run(CELL["question"])
    shown = picker(cockpit)
    expect(slider(shown)).to_be_visible()
    before = saved()
    assert "not released" in before
    assert re.search(r"as of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", before)
    shown.locator("[data-preset=print]").click()
    shown.get_by_role("button", name="Release").click()
    expect(shown.locator(".dpnb-picker-answer")).to_contain_text("95% interval")
    after = saved()
    assert "95% interval" in after
    assert "as of" in after
    cockpit.reload()
    expect(picker(cockpit).locator(".dpnb-picker-answer")).to_contain_text("95% interval")
