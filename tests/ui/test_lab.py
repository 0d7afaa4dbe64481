"""The panel, the status item and the gauges in a real browser, fed by a stand-in for a session."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from ui.conftest import NUMBER
from ui.lab import THEMES, Lab, expect_reading, reading


def expect_everywhere(lab: Lab, text: str) -> None:
    expect_reading(lab.cell_gauge("headroom"), text)
    expect_reading(lab.panel_gauge("headroom"), text)
    expect(lab.status).to_have_text(f"dpnb {text}")


def test_address_that_the_server_prints_is_that_of_the_notebook(lab_url: str, lab_home: Path) -> None:
    printed = (lab_home / "home" / "server.log").read_text(encoding="utf-8")
    assert f"{lab_url}/lab/tree/examples/01-quickstart.ipynb?token=" in printed


def test_gauge_panel_and_status_move_together_while_a_cell_is_running_and_after_it(fake: Lab) -> None:
    for place in fake.places:
        expect(place.get_by_role("meter")).to_have_count(1)
        expect(place.get_by_role("meter", name="Budget left")).to_have_count(1)
    fake.open_folds()
    for place in fake.places:
        expect(place.get_by_role("meter", name="Odometer")).to_have_count(1)
    expect_everywhere(fake, "100.0% left")
    fake.run(NUMBER["spend"])
    expect_everywhere(fake, "75.0% left")
    expect(fake.panel.locator(".dpnb-release")).to_contain_text(["mean of visits by plan"])
    assert reading(fake.cell_gauge("mixture")) == reading(fake.panel_gauge("mixture")) == 0.25
    with fake.running(NUMBER["slowly"]):
        expect_everywhere(fake, "65.0% left")
        fake.let_go("step-1")
        expect_everywhere(fake, "55.0% left")
        assert fake.is_running()
        fake.let_go("step-2")
    expect_everywhere(fake, "35.0% left")


def test_panel_and_status_follow_the_notebook_in_front_and_show_no_number_of_a_kernel_that_is_gone(fake: Lab) -> None:
    fake.open_beside("other.ipynb")
    expect(fake.panel).to_contain_text("%load_ext dpnb")
    expect(fake.status).not_to_be_visible()
    fake.activate("fake.ipynb")
    expect(fake.status).to_have_text("dpnb 100.0% left")
    fake.run(NUMBER["spend"])
    fake.restart()
    expect(fake.panel).to_contain_text("restarted")
    expect(fake.panel.get_by_role("meter")).to_have_count(0)
    expect(fake.status).not_to_be_visible()
    fake.run(NUMBER["load"])
    fake.run(NUMBER["start"])
    expect_everywhere(fake, "100.0% left")
    fake.shut_down()
    expect(fake.panel).to_contain_text("No running kernel")
    expect(fake.status).not_to_be_visible()


def test_words_stand_out_from_the_page_in_both_themes_and_a_rehearsal_is_loudly_not_real(fake: Lab) -> None:
    fake.run(NUMBER["spend"])
    fake.open_folds()
    for theme in THEMES:
        fake.set_theme(theme)
        expect_everywhere(fake, "75.0% left")
        fake.screenshot(theme.lower().replace(" ", "-"))
        for place in fake.places:
            for part in WORDS:
                assert place.locator(part).first.evaluate(CONTRAST) >= 4.5, f"{part} is hard to read in {theme}"
    fake.run(NUMBER["rehearse"])
    expect(fake.panel.get_by_role("alert")).to_have_text("REHEARSAL: mock data, not real")
    expect(fake.status).to_contain_text("REHEARSAL")
    fake.screenshot("rehearsal")


WORDS = [
    *(".dpnb-gauge-text", ".dpnb-gauge-label", ".dpnb-fold-title", ".dpnb-term"),
    *(".dpnb-spent-percent", ".dpnb-spent-loss", ".dpnb-fact-name", ".dpnb-loss-scale", ".dpnb-loss-note"),
    *(".dpnb-filter-name", ".dpnb-filter-enforced", ".dpnb-filter-text"),
    *(".dpnb-reading-note", ".dpnb-odometer-label", ".dpnb-odometer-text", ".dpnb-odometer-sentence"),
]


# Contrast as WCAG 2 defines it, between an element's text and what its nearest opaque ancestor is painted with.
CONTRAST = """node => {
  const parse = colour => {
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const over = (top, below) => top.slice(0, 3).map((c, i) => (c * top[3] + below[i] * (255 - top[3])) / 255);
  const light = rgb => {
    const [r, g, b] = rgb.map(c => c / 255).map(c => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  let ground = node;
  while (parse(getComputedStyle(ground).backgroundColor)[3] < 255) {
    ground = ground.parentElement;
  }
  const back = parse(getComputedStyle(ground).backgroundColor);
  const [high, low] = [light(over(parse(getComputedStyle(node).color), back)), light(back)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
}"""


@pytest.mark.usefixtures("new_page")
def test_panel_opens_by_itself_and_reloaded_while_the_kernel_is_busy_shows_what_it_knew_as_such(fake: Lab) -> None:
    expect(fake.panel).to_be_visible()
    box = fake.panel.bounding_box()
    assert box is not None
    assert box["x"] > 700
    expect_everywhere(fake, "100.0% left")
    cells = fake.page.locator(".jp-Notebook .jp-Cell")
    count = cells.count()
    fake.page.keyboard.press("b")  # command mode: a new cell below
    expect(cells).to_have_count(count + 1)
    fake.page.keyboard.press("d")
    fake.page.keyboard.press("d")
    expect(cells).to_have_count(count)
    fake.run(NUMBER["spend"])
    expect_everywhere(fake, "75.0% left")
    fake.page.evaluate(
        """index => {
          const { content, sessionContext } = window.jupyterapp.shell.currentWidget;
          const code = content.model.cells.get(index).sharedModel.getSource();
          sessionContext.session.kernel.requestExecute({ code });
        }""",
        NUMBER["silently"],
    )
    fake.reload(wait=False)
    expect_reading(fake.panel_gauge("headroom"), "75.0% left")
    expect(fake.panel).to_contain_text("Last known")
    fake.let_go()
    fake.wait_until_idle()
    expect(fake.panel).not_to_contain_text("Last known")
    expect(fake.status).to_have_text("dpnb 75.0% left")


@pytest.mark.usefixtures("new_page")
def test_closed_panel_stays_closed_until_the_status_item_is_clicked(fake: Lab) -> None:
    expect(fake.panel).to_be_visible()
    fake.page.evaluate("() => window.jupyterapp.shell.collapseRight()")
    fake.run(NUMBER["spend"])
    fake.reload()
    expect(fake.status).to_have_text("dpnb 75.0% left")
    expect(fake.panel).not_to_be_visible()
    fake.status.click()
    expect(fake.panel).to_be_visible()
