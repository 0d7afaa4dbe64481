"""The panel as people see it: nothing is cut off, what matters is above the fold, and terms explain themselves."""

from __future__ import annotations

from playwright.sync_api import Locator, expect

from dpnb._browser.glossary import TERMS
from ui.accessible import serious_problems
from ui.conftest import CELL
from ui.lab import THEMES, Lab

QUERIES = """hie.groupby('coins')['mdvis'].mean().release(mu=0.06)
for i in range(3):
    hie[hie['mdvis'] > i].count().release(mu=0.05)"""
EVERYTHING = """for i in range(3):
    hie[hie['mdvis'] > i].count().release(share=0.5)
hie.count().release(share=1)"""
MECHANISMS = """parts = session.partition('coins', name='plans', max_parts_per_unit=1)
for key in (0, 25):
    parts[key].frame.count().release(mu=0.04)
session.delegate(mu=0.05, name='a colleague with a long name')"""

# Visible elements with content that reaches beyond them or beyond the panel.
CUT_OFF = """panel => {
  const right = panel.getBoundingClientRect().right + 1;
  return [...panel.querySelectorAll('*')]
    .filter(node => node.checkVisibility({ contentVisibilityAuto: true }))
    .filter(node => !node.closest('.dpnb-visually-hidden, svg'))
    .filter(node => {
      const { overflowX } = getComputedStyle(node);
      const isCut = node instanceof HTMLElement && overflowX !== 'visible' && node.scrollWidth > node.clientWidth + 1;
      return isCut || node.getBoundingClientRect().right > right;
    })
    .map(node => `${node.className}: ${node.textContent.slice(0, 60)}`);
}"""

LINES = """node => {
  const range = document.createRange();
  range.selectNodeContents(node);
  return new Set([...range.getClientRects()].map(({ bottom }) => Math.round(bottom / 4))).size;
}"""


def ask(lab: Lab, code: str) -> None:
    lab.write(CELL["spare"], code)
    lab.run(CELL["spare"])


def fill(part: Locator) -> str:
    return str(part.locator(".dpnb-bar-fill").first.evaluate("node => getComputedStyle(node).backgroundColor"))


def test_captions_have_one_line_in_a_narrow_panel_and_the_odometer_a_neutral_colour_also_when_all_is_spent(
    cockpit: Lab,
) -> None:
    session = cockpit.places[0]
    meter = session.locator("[role=meter][data-gauge=mixture]")
    cockpit.resize(1280, 800)
    with cockpit.narrow_panel(250):
        cockpit.open_folds()
        for code in ("", QUERIES):
            ask(cockpit, code)
            expect_captions_of_one_line(session)
        before = fill(meter)
        ask(cockpit, EVERYTHING)
        expect_captions_of_one_line(session)
    expect(cockpit.panel_gauge("headroom")).to_have_attribute("aria-valuetext", "0.0% left")
    expect(meter).to_have_attribute("aria-valuenow", "1")
    assert fill(meter) == before
    warning = session.evaluate("""node => {
      const probe = document.createElement('i');
      probe.style.color = 'var(--dpnb-out)';
      node.append(probe);
      const { color } = getComputedStyle(probe);
      probe.remove();
      return color;
    }""")
    stroke = "node => getComputedStyle(node.querySelector('.dpnb-gauge-track')).stroke"
    assert warning not in (before, cockpit.panel_gauge("headroom").evaluate(stroke))
    note = session.locator(".dpnb-loss-note")
    expect(note).to_be_visible()
    expect(note).to_contain_text("a different statement from the guarantee, so it may exceed epsilon")
    bound = cockpit.value("session.odometer.bound")
    assert isinstance(bound, float)
    assert bound > 2, "above the epsilon of the guarantee"
    cockpit.screenshot("panel-spent")


def expect_captions_of_one_line(session: Locator) -> None:
    for part in (".dpnb-gauge-text", ".dpnb-gauge-label", ".dpnb-loss-end", ".dpnb-spent-percent"):
        for caption in session.locator(part).all():
            assert caption.evaluate(LINES) == 1, caption.text_content()


def test_terms_are_explained_accessibly_on_hover_and_on_focus_in_the_panel_and_below_a_cell(cockpit: Lab) -> None:
    ask(cockpit, QUERIES)
    box = cockpit.page.locator(".dpnb-definition")
    cockpit.open_folds()
    for place in cockpit.places:
        place.scroll_into_view_if_needed()
        for term, words in (("budget left", "Budget left"), ("mu", "mu"), ("odometer", "Odometer"), ("DP", "DP")):
            shown = place.locator(".dpnb-term").get_by_text(words, exact=True).first
            expect(shown).to_have_accessible_description(TERMS[term])
            shown.hover()
            expect(box).to_have_text(TERMS[term])
            expect(box).to_be_in_viewport(ratio=1)
            cockpit.page.keyboard.press("Escape")
            expect(box).to_have_count(0)
            cockpit.page.mouse.move(0, 0)
            shown.focus()
            expect(box).to_have_text(TERMS[term])
            cockpit.page.keyboard.press("Escape")
            expect(box).to_have_count(0)
            expect(shown).to_be_focused()
    term = cockpit.places[0].locator(".dpnb-term").get_by_text("Odometer", exact=True)
    for theme in THEMES:
        cockpit.set_theme(theme)
        term.blur()
        term.focus()
        expect(cockpit.page.locator(".dpnb-definition")).to_be_visible()
        cockpit.screenshot(f"definition-{theme.split()[-1].lower()}")
        seen = (".dpnb-panel", ".dpnb-definition")
        assert serious_problems(cockpit.page, *seen, only_colours=theme != THEMES[-1]) == [], theme


def test_what_matters_is_above_the_fold_on_a_small_screen_and_nothing_is_cut_off(cockpit: Lab) -> None:
    cockpit.resize(1280, 800)
    ask(cockpit, QUERIES)
    session = cockpit.places[0]
    expect(cockpit.panel.locator(".dpnb-release")).to_have_count(4)
    for part in (
        *(".dpnb-dial", ".dpnb-spent-percent", ".dpnb-guarantee"),
        *(".dpnb-timeline-spent", ".dpnb-timeline-tip"),
    ):
        expect(session.locator(part).first).to_be_in_viewport(ratio=1)
    for part in (".dpnb-spent-loss", ".dpnb-loss-note"):
        expect(session.locator(part).first).not_to_be_visible()
    expect(session.locator(".dpnb-release").first).to_be_in_viewport()
    assert cockpit.panel.evaluate("panel => panel.scrollTop") == 0
    cockpit.screenshot("panel-1280x800")

    ask(cockpit, MECHANISMS)
    cockpit.run(CELL["refused"])
    expect(cockpit.panel.locator(".dpnb-refusal")).to_have_count(1)
    for fold in cockpit.panel.locator(".dpnb-fold:not([open]) > summary").all()[::-1]:
        fold.click()

    def look(name: str) -> None:
        cockpit.wait_until_still()
        assert cockpit.panel.evaluate(CUT_OFF) == [], name
        assert cockpit.panel.evaluate("panel => panel.scrollWidth <= panel.clientWidth"), name
        cockpit.screenshot(f"panel-{name}")

    look("1280-default")
    with cockpit.narrow_panel(250):
        look("1280-250")
    cockpit.resize(400, 800)
    look("400-default")
