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
    words = re.fullmatch(r"\.release\(mu=(\S+)\)", picker.locator(".dpnb-picker-code").text_content() or "")
    assert words is not None
    return float(words[1])


def released(picker: Locator) -> Locator:
    """Press Release, and confirm if that is asked for; the answer."""
    picker.get_by_role("button", name="Release", exact=True).click()
    picker.locator(".dpnb-picker-buttons .dpnb-picker-confirm:visible, .dpnb-picker-answer:visible").first.wait_for()
    confirm = picker.locator(".dpnb-picker-buttons").get_by_role("button", name="Confirm")
    if confirm.is_visible():
        confirm.click()
    return picker.locator(".dpnb-picker-answer")


IS_IN_VIEW = """answer => {
  const box = answer.getBoundingClientRect();
  const page = answer.closest('.jp-WindowedPanel-outer').getBoundingClientRect();
  return box.height > 0 && box.top >= page.top - 1 && box.bottom <= page.bottom + 1;
}"""


def wait_until_in_view(lab: Lab, shown: Locator) -> None:
    """Wait until an element is inside the visible part of the notebook as a whole."""
    lab.page.wait_for_function(IS_IN_VIEW, arg=shown.element_handle())


def test_slider_and_presets_show_a_preview_the_keyboard_stays_in_the_picker_and_a_large_cost_is_confirmed_in_place(
    cockpit: Lab,
) -> None:
    cockpit.run(CELL["question"])
    shown = picker(cockpit)
    expect(slider(shown)).to_be_visible()
    slider(shown).press("End")
    expect(shown.locator(".dpnb-picker-cost")).to_have_text("100.0% of the budget, all that is left")
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
    assert float(percent[1]) == pytest.approx(100 * cost, abs=0.1)
    words = re.match(
        r"± [\d.]+ to ± ([\d.]+) mdvis at 95% \(noise\)", shown.locator(".dpnb-picker-error").text_content() or ""
    )
    assert words is not None
    assert float(words[1]) == pytest.approx(error, rel=0.06)
    expect(shown.locator(".dpnb-picker-times")).to_have_text(
        f"{times - 1} more quer{'y' if times == 2 else 'ies'} at this cost"
    )
    presets = {
        "glance": ("Rough estimate", 0.01),
        "talk": ("For a talk", 0.05),
        "print": ("For publication", 0.2),
    }
    for name, (label, share) in presets.items():
        button = shown.locator(f"[data-preset={name}]")
        expect(button).to_contain_text(label)
        expect(button).to_contain_text(f"{100 * share:g}% of what is left")
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
    expect(shown.locator(".dpnb-picker-head .dpnb-term")).to_be_focused()
    cockpit.page.keyboard.press("Shift+Tab")
    cockpit.page.keyboard.press("Space")  # the preset before the slider
    expect(shown.locator(".dpnb-picker-preset[data-preset=print]")).to_have_attribute("aria-pressed", "true")
    assert spent(cockpit) == 0, "looking is free"

    slider(shown).press("End")
    release = shown.get_by_role("button", name="Release", exact=True)
    confirm, cancel = (shown.get_by_role("button", name=name) for name in ("Confirm", "Cancel"))
    release.dblclick()
    expect(shown.locator(".dpnb-picker-question:visible")).to_have_text("Release for 100.0% of what is left?")
    cockpit.screenshot("picker-confirm")
    cancel.click()
    release.press("Enter")
    expect(cancel).to_be_focused()
    cockpit.page.keyboard.press("Escape")
    expect(release).to_be_focused()
    slider(shown).press("ArrowLeft")
    release.click()
    expect(shown.locator(".dpnb-picker-question:visible")).to_contain_text("% of what is left?")
    assert spent(cockpit) == 0
    confirm.dblclick()
    expect(shown.locator(".dpnb-picker-answer")).to_contain_text("95% noise interval")
    assert cockpit.value("len(session.log)") == 1


def test_inputs_keep_the_keys_that_are_typed_and_after_a_release_by_mouse_they_are_the_notebooks(cockpit: Lab) -> None:
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
    cockpit.run(CELL["question"])
    shown = picker(cockpit)
    shown.get_by_role("button", name="Release").click()
    expect(shown.locator(".dpnb-picker-answer")).to_be_focused()
    cockpit.page.keyboard.press("b")  # command mode: a new cell below
    expect(cells).to_have_count(count + 1)
    shown.locator(".dpnb-picker-answer").click()
    cockpit.page.keyboard.press("Shift+Enter")  # run this cell again, and go to the next
    expect(shown.locator(".dpnb-picker-answer")).to_contain_text("95% noise interval")
    expect(cells.nth(CELL["question"] + 1)).to_have_class(re.compile("jp-mod-active"))


def test_picker_is_inactive_after_a_restart_until_its_cell_is_run_again(cockpit: Lab) -> None:
    cockpit.run(CELL["question"])
    cockpit.run(CELL["count"])
    picker(cockpit).get_by_role("button", name="Release").click()
    expect(picker(cockpit).locator(".dpnb-picker-answer")).to_contain_text("95% noise interval")
    estimate = str(cockpit.value("f'{visits.best[0].estimate:.2f}'"))
    before = spent(cockpit)
    cockpit.restart()
    for name in ("question", "count"):
        old = picker(cockpit, name)
        expect(old.locator(".dpnb-picker-status")).to_contain_text("Run this cell again")
        expect(old).to_have_class(re.compile("dpnb-mod-inactive"))
        for button in old.get_by_role("button").all():
            expect(button).to_be_disabled()
    expect(picker(cockpit).locator(".dpnb-picker-answer")).to_contain_text("95% noise interval")
    cockpit.screenshot("picker-after-restart")
    for name in ("load", "session", "question", "count"):
        cockpit.run(CELL[name])
    expect(picker(cockpit, "count").get_by_role("button", name="Release")).to_be_enabled()
    expect(picker(cockpit).locator(".dpnb-picker-answer")).to_contain_text(estimate)
    expect(slider(picker(cockpit))).not_to_be_visible()
    expect(picker(cockpit).get_by_role("button", name="Refine…")).to_be_visible()
    assert spent(cockpit) == before


def test_release_replaces_the_picker_charges_what_was_shown_and_refining_pays_only_the_difference(cockpit: Lab) -> None:
    cockpit.run(CELL["question"])
    shown = picker(cockpit)
    shown.locator("[data-preset=glance]").click()
    mu = budget(shown)
    cockpit.screenshot("picker")
    answer = released(shown)
    expect(answer).to_contain_text("95% noise interval")
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

    shown.get_by_role("button", name="Refine…").click()
    expect(slider(shown)).to_be_focused()
    expect(shown.locator(".dpnb-picker-current")).to_contain_text("Refining it costs only the difference")
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


UNWATCHED = (
    "setattr(__import__('dpnb.notebook.ledger_watch').notebook.ledger_watch.LedgerWatch, 'look', lambda _: False)"
)
"""Keeps the picker from following another kernel before the click that is to be refused."""


def test_refused_release_says_why_and_the_picker_goes_on(cockpit: Lab) -> None:
    cockpit.run(CELL["question"])
    cockpit.value(UNWATCHED)
    shown = picker(cockpit)
    slider(shown).press("End")
    slider(shown).press("ArrowLeft")
    wanted = budget(shown)
    cockpit.run_elsewhere(ELSEWHERE, "session.frame.count().release(share=0.6)")
    shown.get_by_role("button", name="Release").click()
    shown.get_by_role("button", name="Confirm").click()
    refusal = shown.locator(".dpnb-picker-refusal")
    expect(refusal).to_contain_text("the largest that fits is")
    expect(refusal).to_contain_text(f"% of the budget (mu={wanted!r}), and ")
    assert budget(shown) < wanted, "the slider ends at what is left now"
    expect(shown.get_by_role("button", name="Release")).to_be_enabled()
    shown.locator("[data-preset=glance]").click()
    shown.get_by_role("button", name="Release").click()
    expect(shown.locator(".dpnb-picker-answer")).to_contain_text("95% noise interval")
    expect(refusal).not_to_be_visible()


def test_picker_in_sight_follows_what_other_cells_spend_and_the_magic_asks_for_a_flag_in_place_of_a_dialog(
    cockpit: Lab,
) -> None:
    cockpit.run(CELL["question"])
    shown = picker(cockpit)
    slider(shown).press("End")
    cost = shown.locator(".dpnb-picker-cost")
    expect(cost).to_have_text("100.0% of the budget, all that is left")
    cockpit.run(CELL["release"])
    shown.scroll_into_view_if_needed()
    share = float(str(cockpit.value("visits.preview(share=1).cost_fraction")))
    assert 0.9 < share < 1
    expect(cost).to_have_text(f"{math.ceil(1000 * share) / 10:.1f}% of the budget, all that is left")
    before = spent(cockpit)
    cockpit.write(CELL["spare"], "%%dpnb share=0.4\nhie['mdvis'].sum()")
    cockpit.run(CELL["spare"])
    cell = cockpit.page.locator(".jp-Cell").nth(CELL["spare"])
    expect(cell.locator(".jp-OutputArea")).to_contain_text("write %%dpnb share=0.4 --yes")
    assert spent(cockpit) == before
    cockpit.write(CELL["spare"], "%%dpnb share=0.4 --yes\nhie['mdvis'].sum()")
    cockpit.run(CELL["spare"])
    expect(cell.locator(".jp-OutputArea")).to_contain_text("95% noise interval")


# --- what is unknown, what is large, and where the answer is ----------------------------------------------------------

UNKNOWN = COCKPIT["session"].replace("    public_size=6000,\n", "")
"""The session without a public number of units."""


@pytest.fixture
def unknown(lab: Lab) -> Lab:
    """The analyst's notebook with a session that has no public number of units."""
    lab.open("cockpit.ipynb")
    lab.write(CELL["session"], UNKNOWN)
    for name in ("load", "session", "question"):
        lab.run(CELL[name])
    return lab


OVERFLOWING = """picker => {
  const right = picker.getBoundingClientRect().right;
  return [...picker.querySelectorAll('*')].filter(node =>
    node.checkVisibility() && node.getBoundingClientRect().right > right + 1).map(node => node.className);
}"""


def test_unknown_error_is_a_step_which_makes_the_errors_of_group_means_known_and_nothing_is_cut(unknown: Lab) -> None:
    shown = picker(unknown)
    step = shown.locator(".dpnb-picker-count")
    expect(step).to_contain_text("it depends on the number of rows in each group")
    expect(shown.locator(".dpnb-picker-error")).not_to_be_visible()
    expect(shown.get_by_role("button", name="Release", exact=True)).not_to_be_visible()
    button = step.get_by_role(
        "button", name=re.compile(r"number of rows first \([\d.]+% of the budget, ± [\d,.]+ rows\)")
    )
    cost = re.search(r"([\d.]+)%", button.text_content() or "")
    assert cost is not None
    unknown.screenshot("picker-unknown")
    unknown.resize(1280, 800)
    assert shown.evaluate(OVERFLOWING) == []
    unknown.resize_without_panels(420, 800)
    shown.scroll_into_view_if_needed()
    assert shown.evaluate(OVERFLOWING) == []
    button.dblclick()  # is one release
    count = shown.locator(".dpnb-picker-count-answer")
    expect(count).to_contain_text("count of mdvis by coins")
    expect(count).to_contain_text("session.frame.groupby('coins')['mdvis'].count().release(mu=")
    expect(count).to_be_focused()
    wait_until_in_view(unknown, count)
    expect(shown.locator(".dpnb-picker-error")).to_contain_text(
        re.compile(r"± [\d.]+ mdvis at 95%( or better)? \(noise\)")
    )
    expect(step).not_to_be_visible()
    charged = 100 * float(str(unknown.value("float(session.log['cost_fraction'].sum())")))
    assert charged == pytest.approx(float(cost[1]), abs=0.011)
    assert unknown.value("len(session.log)") == 1
    unknown.screenshot("picker-count-released")
    expect(shown).to_contain_text("Release")
    expect(released(shown)).to_contain_text("mean of mdvis by coins")
    expect(count).to_be_visible()
    wait_until_in_view(unknown, shown.locator(".dpnb-picker-answer"))
    unknown.save()
    [output] = unknown.notebook("cockpit.ipynb")["cells"][CELL["question"]]["outputs"]
    page = "".join(output["data"]["text/html"])
    assert page.index("mean of mdvis by coins") < page.index("count of mdvis by coins")
    for width in (420, 1280):
        unknown.resize_without_panels(width, 800)
        assert shown.evaluate("picker => picker.scrollWidth <= picker.clientWidth + 1"), width
        unknown.screenshot(f"picker-{width}")


LONG = "print('\\n'.join(map(str, range(80))))"


def test_answer_is_in_view_after_a_release_in_the_middle_and_at_the_bottom(cockpit: Lab) -> None:
    for name in ("count", "release", "refused"):  # between the two questions
        cockpit.write(CELL[name], LONG)
    cockpit.write(CELL["spare"], COCKPIT["question"].replace("mean", "sum"))
    for name in ("question", "count", "release", "refused", "spare"):
        cockpit.run(CELL[name])
    for name, where in (("question", "middle"), ("spare", "bottom")):
        shown = picker(cockpit, name)
        button = shown.get_by_role("button", name="Release", exact=True)
        button.scroll_into_view_if_needed()
        expect(released(shown)).to_contain_text("95% noise interval")
        wait_until_in_view(cockpit, shown.locator(".dpnb-picker-answer"))
        cockpit.screenshot(f"picker-in-view-{where}")


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
    expect(shown.locator(".dpnb-picker-answer")).to_contain_text("95% noise interval")
    after = saved()
    assert "95% noise interval" in after
    assert "as of" in after
    cockpit.reload()
    expect(picker(cockpit).locator(".dpnb-picker-answer")).to_contain_text("95% noise interval")
