"""The second notebook, run from top to bottom in a browser: figures are drawn, lists say what the session says."""

from __future__ import annotations

from playwright.sync_api import expect

from ui.lab import Lab

FIGURES = 5


def test_figures_are_drawn_and_every_filter_and_odometer_is_told(lab: Lab) -> None:
    lab.open("02-filters-and-odometers.ipynb")
    lab.run_all()
    # The notebook scrolls, and what is out of sight may not be drawn yet: look at one figure after the other.
    figures = lab.page.locator(".jp-OutputArea .js-plotly-plot")
    expect(figures).to_have_count(FIGURES)
    for index in range(FIGURES):
        figures.nth(index).scroll_into_view_if_needed()
        expect(figures.nth(index).locator(".scatterlayer .trace").first).to_be_visible()
        expect(figures.nth(index).locator(".gtitle")).not_to_be_empty()
    headroom = lab.value("session.headroom")
    assert isinstance(headroom, float)
    sentences = lab.value(
        "[line.description for line in __import__('dpnb').session.snapshot.snapshot(session, compared=True).odometers]"
    )
    lab.open_folds()
    for place in lab.places:
        rows = place.locator("tr.dpnb-filter")
        expect(rows).to_have_count(6)
        expect(rows.first).to_have_attribute("data-filter", "zcdp")
        expect(rows.first).to_contain_text("enforced")
        expect(rows.first).to_contain_text(f"{int(1000 * headroom) / 10:.1f}% left")
        expect(place.locator("tr.dpnb-filter[data-filter=rogers]")).to_contain_text("would have refused query")
        expect(place.locator(".dpnb-odometer-sentence")).to_have_text(sentences)
    lab.screenshot("filters-and-odometers")
