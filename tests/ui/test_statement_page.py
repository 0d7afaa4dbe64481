"""The page of a disclosure statement in a real browser: legible at every width, light and dark, on paper, and inert."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from dpnb.session.disclosure.building import report_of
from session.statements import Divided
from ui.accessible import problems
from ui.console import keep_picture

HOSTILE = "</template><img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"
LONG = "a long name without any space " * 3

COLOURS = """() => { const style = getComputedStyle(document.body); return [style.color, style.backgroundColor]; }"""
OUTSIDE = """() => [...document.querySelectorAll('main *')]
  .filter(one => !one.closest('.scroll table') && one.getBoundingClientRect().right > window.innerWidth + 1)
  .map(one => one.outerHTML.slice(0, 80))"""


@pytest.fixture(scope="module")
def statement(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The statement of a divided ledger with hostile names, long lists and everything that a statement can have."""
    folder = tmp_path_factory.mktemp("statement")
    divided = Divided(folder / "clinic.dpnb", "pooled")
    session = divided.session
    with_origin = divided.analysts["bob"]
    from dpnb.ledger import RequestOrigin, requested_by

    with requested_by(RequestOrigin("bob")):
        with_origin.above_threshold(50, epsilon=0.01, name=HOSTILE)
        with_origin.above_threshold(50, epsilon=0.01, name=LONG.replace(" ", "_"))
    path = folder / "statement.html"
    report_of(session.ledger.path, answers=True).save(path)
    return path


@pytest.fixture(
    scope="module",
    params=[("wide", 1200, "light"), ("dark", 1200, "dark"), ("phone", 360, "light")],
    ids=lambda one: one[0],
)
def page(request: pytest.FixtureRequest, browser: Any, statement: Path) -> Iterator[Page]:
    name, width, scheme = request.param
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page, said = context.new_page(), list[str]()
    page.on("console", lambda message: said.append(message.text))
    page.goto(statement.as_uri())
    yield page
    keep_picture(page, f"statement-{name}", full_page=True)
    context.close()
    assert said == []


def test_nothing_is_wider_than_the_screen(page: Page) -> None:
    assert page.evaluate(OUTSIDE) == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_a_long_name_takes_no_column_out_of_sight(page: Page) -> None:
    if (page.viewport_size or {})["width"] > 1000:
        for region in page.get_by_role("region").all():
            assert region.evaluate("one => one.scrollWidth <= one.clientWidth")


def test_nothing_that_an_analyst_wrote_is_run(page: Page) -> None:
    assert page.title().startswith("Disclosure statement")
    assert page.locator("script, img, iframe, link, a").count() == 0
    assert page.get_by_text("onerror=").count() >= 1


def test_it_is_accessible(page: Page) -> None:
    assert problems(page) == []
    assert page.get_by_role("heading", level=1).count() == 1
    headings = page.get_by_role("heading", level=2).all_inner_texts()
    assert headings[:3] == ["Who is protected", "What is guaranteed", "What has been released"]
    for table in page.locator("table").all():
        assert table.locator("caption").inner_text()
        assert table.locator("th:not([scope])").count() == 0


def test_the_colours_are_those_of_the_scheme(browser: Any, statement: Path) -> None:
    found = set()
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme)
        page = context.new_page()
        page.goto(statement.as_uri())
        found.add(tuple(page.evaluate(COLOURS)))
        page.emulate_media(media="print")
        assert page.evaluate(COLOURS) == ["rgb(0, 0, 0)", "rgb(255, 255, 255)"]
        context.close()
    assert len(found) == 2


def test_on_paper_tables_are_as_wide_as_the_page(browser: Any, statement: Path) -> None:
    page = browser.new_page(viewport={"width": 673, "height": 900})  # A4 without its margins
    page.goto(statement.as_uri())
    page.emulate_media(media="print")
    assert page.evaluate("[...document.querySelectorAll('table')].filter(t => t.offsetWidth > 673).length") == 0
    assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")
    page.close()


def test_the_tables_can_be_scrolled_with_the_keyboard(browser: Any, statement: Path) -> None:
    page = browser.new_page(viewport={"width": 360, "height": 900})
    page.goto(statement.as_uri())
    region = page.get_by_role("region", name="Requests, oldest first")
    region.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("one => one.scrollLeft > 0", arg=region.element_handle())
    page.close()
