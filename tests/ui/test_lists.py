"""The folded parts of a session in a real browser, with filters and odometers, in the panel and below a cell."""

from __future__ import annotations

from playwright.sync_api import Locator, expect

from ui.conftest import NUMBER
from ui.lab import Lab

FILTERS, ODOMETERS = "Same guarantee under each filter", "Odometers"


def folds(lab: Lab) -> list[Locator]:
    """What can be folded away: timeline and accounting details in the panel, then the same two below the cell."""
    return [place.locator(name) for place in lab.places for name in (".dpnb-budget-over-time", ".dpnb-accounting")]


def expect_open(lab: Lab, expected: list[bool]) -> None:
    for fold, is_open in zip(folds(lab), expected, strict=True):
        expect(fold).to_have_js_property("open", is_open)


def test_filters_are_a_table_odometers_a_list_by_reading_both_follow_the_budget_and_a_narrow_panel_cuts_nothing_off(
    fake: Lab,
) -> None:
    fake.open_folds()
    fake.run(NUMBER["spend"])
    for place in fake.places:
        rows = place.get_by_role("table", name=FILTERS).locator("tbody").get_by_role("row")
        names = rows.get_by_role("rowheader")
        expect(names).to_have_text(["GDP enforced", "basic"], use_inner_text=True)
        left = ["75.0% left; 3 more like the last", "would have refused query 1"]
        expect(rows.locator(".dpnb-filter-text")).to_have_text(left)
        sentence = "A made-up sum. It would have refused query 1."
        expect(rows.nth(1)).to_have_attribute("title", sentence)
        expect(rows.nth(1)).to_have_accessible_name(f"basic would have refused query 1 {sentence}")
    sentences = {
        "time-uniform": "With confidence 99.9999%, the privacy loss of fake so far is at most 0.250.",
        "accumulator": "Everything so far is inside every budget that is at least 0.250.",
    }
    for place in fake.places:
        for reading, sentence in sentences.items():
            items = place.get_by_role("list", name=f"Odometers, {reading}").get_by_role("listitem")
            expect(items).to_have_count(1)
            items.get_by_text(sentence).scroll_into_view_if_needed()  # nothing is cut off or folded away
            expect(items.get_by_text(sentence)).to_be_in_viewport()

    fake.write(NUMBER["spend"], "budget.name = 'table' * 20\nbudget.set(0.75, 'mean of ' + 'visits' * 20)")
    with fake.narrow_panel(240):
        fake.run(NUMBER["spend"])
        expect(fake.panel).to_contain_text("the privacy loss of tabletable")
        fake.open_folds()
        box = fake.panel.bounding_box()
        assert box is not None
        assert box["width"] < 270
        fake.screenshot("narrow")
        assert fake.panel.evaluate("panel => panel.scrollWidth <= panel.clientWidth")


def test_mouse_and_keyboard_fold_and_unfold_and_an_update_keeps_both(fake: Lab) -> None:
    expect_open(fake, [True, False, False, False])
    for fold in folds(fake):
        fold.locator("summary").click()
    expect_open(fake, [False, True, True, True])
    fake.run(NUMBER["spend"])
    expect(fake.places[1]).to_contain_text("75.0% left; 3 more like the last")
    expect_open(fake, [False, True, True, True])
    for key, opened in (("Enter", [True, False, False, False]), ("Space", [False, True, True, True])):
        for fold in folds(fake):
            fold.locator("summary").focus()
            fake.page.keyboard.press(key)
        expect_open(fake, opened)
    fake.value("budget.set(0.5)")  # no cell is run: that would take the keyboard
    expect(fake.places[1]).to_contain_text("50.0% left; 2 more like the last")
    expect_open(fake, [False, True, True, True])
    expect(folds(fake)[3].locator("summary")).to_be_focused()
