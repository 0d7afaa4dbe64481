"""The curator's page: logins, protections, what it shows and what it does."""

from __future__ import annotations

import asyncio
import json
import threading
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest

import dpnb
from dpnb._core.accountant.grant import Mode
from dpnb._request import Release, RequestBudget
from dpnb._target import Target
from dpnb.curator.audit import audit
from dpnb.curator.verification import verify
from dpnb.ledger import Ledger
from dpnb.service.access import tokens
from dpnb.service.access.tokens import Role, new_token, revoke_tokens
from dpnb.service.cockpit import app, protections
from dpnb.service.cockpit.app import Cockpit
from dpnb.service.cockpit.protections import POLICY, Logins, Origins
from dpnb.service.configuration.parts import AmountSettings, DivisionSettings, PartSettings
from dpnb.service.curation import rows as log_rows
from dpnb.service.quotas import FAILURES_PER_MINUTE
from service.cockpits import ACTS, FREEZE, LOG, ORIGIN, Browser, Opened, built, run_cockpit
from service.served import open_people
from waiting import LIMIT

__all__ = ["built"]
pytestmark = pytest.mark.usefixtures("built")

STATEMENT = "/api/tables/people/statement"
PLAN = "/api/tables/people/plan"
PEOPLE = "/api/tables/people/people"
RECORDS = "/api/tables/people/records"
AUDITS = "/api/tables/people/audits"
READ = ("/api/state", LOG, PLAN, STATEMENT, RECORDS, "/api/events")
POSTS: dict[str, tuple[Any, set[Role]]] = {
    AUDITS: ({}, {"auditor", "curator", "owner"}),
    ACTS: ({"act": "unfreeze"}, {"curator", "owner"}),
    PEOPLE: ({"act": "remove_analyst", "name": "ana"}, {"curator", "owner"}),
    "/api/tokens": ({"name": "ana"}, {"curator", "owner"}),
    "/api/logout": ({}, {"auditor", "curator", "owner"}),
}


# --- logins ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", tokens.ROLES)
def test_a_login_is_for_curators_owners_and_auditors(role: Role, tmp_path: Path) -> None:
    async def scenario(opened: Opened) -> None:
        browser = opened.browser("eve", role)
        assert (await browser.get("/api/state")).status_code == 401
        reply = await browser.login()
        assert reply.status_code == (200 if role in tokens.AUDITORS else 403)
        assert ("set-cookie" in reply.headers) == (role in tokens.AUDITORS)
        if role in tokens.AUDITORS:
            assert reply.json()["role"] == role
            assert (await browser.state())["may_act"] == (role != "auditor")

    run_cockpit(tmp_path, scenario)


@pytest.mark.parametrize("is_secure", [False, True])
def test_the_cookie_is_strict_and_says_nothing(is_secure: bool, tmp_path: Path) -> None:
    async def scenario(opened: Opened) -> None:
        origin = ORIGIN.replace("http", "https") if is_secure else ORIGIN
        browser = opened.browser("eve", "curator", origin)
        reply = await browser.login()
        cookie = reply.headers["set-cookie"].lower()
        assert {"httponly", "samesite=strict", "path=/"} <= set(cookie.split("; "))
        assert ("secure" in cookie.split("; ")) == is_secure == cookie.startswith("__host-")
        assert browser.served.token not in str(reply.headers) + reply.text + (await browser.get("/api/state")).text
        assert "domain" not in cookie

    run_cockpit(tmp_path, scenario, Origins(("localhost",), is_secure))


def test_every_route_needs_both_values(tmp_path: Path) -> None:
    """A browser sends a cookie to every port of a host, so a program with a port there has the cookie."""

    async def scenario(opened: Opened) -> None:
        browser = await opened.logged_in()
        csrf = browser.csrf
        for wrong in ("", "x", csrf + "x"):
            browser.csrf = wrong
            for path in READ:
                assert (await browser.get(path)).status_code == 401
            for path, (body, _) in POSTS.items():
                assert (await browser.post(path, body)).status_code == 401
        other = opened.browser("eve", "curator")
        other.csrf = csrf  # without the cookie
        assert (await other.get("/api/state")).status_code == 401
        browser.csrf = csrf
        assert (await browser.get("/api/state")).status_code == 200

    run_cockpit(tmp_path, scenario)


def test_a_cookie_alone_would_read_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control of the above."""
    monkeypatch.setattr(protections.hmac, "compare_digest", lambda one, other: len(one) == len(other))

    async def scenario(opened: Opened) -> None:
        browser = await opened.logged_in()
        browser.csrf = "x"
        assert (await browser.get("/api/state")).status_code == 200

    run_cockpit(tmp_path, scenario)


def test_each_act_needs_a_role_that_may_act(tmp_path: Path) -> None:
    async def scenario(opened: Opened) -> None:
        routes = {route.path for route in opened.app._app.routes}  # type: ignore[attr-defined]
        known = {path.replace("tables/people", "tables/{table}") for path in (*READ, *POSTS)}
        assert routes - {"/", "/cockpit.js", "/cockpit.css", "/login", "/metrics"} == known
        for role in ("auditor", "curator", "owner"):
            browser = await opened.logged_in(f"an-{role}", role)
            for path, (body, roles) in POSTS.items():
                done = 422 if path == PEOPLE else 200  # the table has no parts
                assert (await browser.post(path, body)).status_code == (done if role in roles else 403), (role, path)

    run_cockpit(tmp_path, scenario)


def test_a_revoked_token_ends_the_login_and_its_stream(tmp_path: Path) -> None:
    async def scenario(opened: Opened) -> None:
        browser = await opened.logged_in()
        cookie = dict(browser.client.cookies)["dpnb-cockpit"]
        is_valid = opened.cockpit._logins.checker(cookie, browser.csrf)
        stream = opened.cockpit._live.stream(is_valid)
        assert await anext(stream) == b"data: changed\n\n"
        assert (await browser.get("/api/state")).status_code == 200
        revoke_tokens(opened.served.tokens, "eve")
        assert (await browser.get("/api/state")).status_code == 401
        assert (await browser.post(ACTS, FREEZE)).status_code == 401
        async with asyncio.timeout(LIMIT):
            assert b"data: changed\n\n" not in [event async for event in stream]
        assert opened.served.charges == 0
        new_token(opened.served.tokens, "eve", role="curator")  # of the same person: the login stays ended
        assert (await browser.get("/api/state")).status_code == 401

    run_cockpit(tmp_path, scenario)


def test_a_login_ends_with_its_time_and_by_logging_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(opened: Opened) -> None:
        browser = await opened.logged_in()
        later = tokens.now() + protections.LIFETIME + timedelta(seconds=1)
        with monkeypatch.context() as patch:
            patch.setattr(tokens, "now", lambda: later)
            assert (await browser.get("/api/state")).status_code == 401
        other = await opened.logged_in()
        cookies = dict(other.client.cookies)
        assert (await other.post("/api/logout", {})).status_code == 200
        other.client.cookies.update(cookies)  # somebody has copied them
        assert (await other.get("/api/state")).status_code == 401

    run_cockpit(tmp_path, scenario)


def test_a_login_has_new_secrets(tmp_path: Path) -> None:
    """Nobody can choose the cookie of another: what a browser had before a login is not used."""

    async def scenario(opened: Opened) -> None:
        browser = opened.browser("eve", "curator")
        body = {"token": browser.served.token}
        reply = await browser.post("/login", body, Cookie="dpnb-cockpit=chosen")
        first = (browser.client.cookies.get("dpnb-cockpit"), reply.json()["csrf"])
        assert "chosen" not in first
        await browser.login()
        assert set(first).isdisjoint({browser.client.cookies.get("dpnb-cockpit"), browser.csrf})
        assert len(opened.cockpit._logins._logins) == 1

    run_cockpit(tmp_path, scenario)


def test_failed_logins_are_limited_and_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(app, "log_login", lambda event, **facts: logged.append((event, facts)))

    async def scenario(opened: Opened) -> None:
        browser = opened.browser("eve", "curator")
        codes = [
            (await browser.post("/login", {"token": f"dpnb_{n}"})).status_code for n in range(FAILURES_PER_MINUTE + 5)
        ]
        assert codes == [401] * FAILURES_PER_MINUTE + [429] * 5
        assert [event for event, _ in logged] == ["login_refused"] * len(codes)
        assert "dpnb_1" not in str(logged)
        assert (await browser.login()).status_code == 200  # nobody can lock a curator out
        assert logged[-1] == ("login", {"actor": "eve", "role": "curator", "client": "127.0.0.1", "page": "cockpit"})

    run_cockpit(tmp_path, scenario)


def test_the_number_of_logins_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protections, "MOST_LOGINS", 3)
    token = new_token(tmp_path / "tokens.json", "eve", role="owner")
    held = Logins(tokens.TokenStore(tmp_path / "tokens.json"))
    begun = [held.begin(token) for _ in range(5)]
    assert all(isinstance(one, protections.NewLogin) for one in begun)
    people = [held.person(one.cookie, one.csrf) for one in begun if isinstance(one, protections.NewLogin)]
    assert [one is not None for one in people] == [False, False, True, True, True]
    kept = f"{held._logins}"
    assert not any(one.cookie in kept or one.csrf in kept for one in begun if isinstance(one, protections.NewLogin))
    assert token not in kept


# --- other pages ----------------------------------------------------------------------------------------------------

ELSEWHERE = (
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": ""},
    {"Origin": "http://localhost:9999"},
    {"Origin": "http://localhost"},
    {"Origin": ORIGIN.replace("http", "https")},
    {"Host": "evil.example:8444"},
    {"Host": "localhost.evil.example"},
    {"Host": "localhost:8444.evil.example"},
    {"Host": "[::1]:8444"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
)


@pytest.mark.parametrize("headers", ELSEWHERE, ids=str)
def test_a_request_of_another_page_is_refused(headers: dict[str, str], tmp_path: Path) -> None:
    async def scenario(opened: Opened) -> None:
        browser = await opened.logged_in()
        for path, body in (
            (ACTS, FREEZE),
            (PEOPLE, {}),
            ("/login", {"token": browser.served.token}),
            ("/api/tokens", {}),
        ):
            assert (await browser.post(path, body, **headers)).status_code == 403
        assert opened.served.session._core.account.tree.frozen is None
        if "Origin" not in headers:
            assert (await browser.get("/api/state", **headers)).status_code == 403
            assert (await browser.get("/", **headers)).status_code == 403
        assert (await browser.post(ACTS, FREEZE)).status_code == 200  # its own page
        assert opened.served.session._core.account.tree.frozen == "an audit"

    run_cockpit(tmp_path, scenario)


def test_without_the_checks_another_page_would_freeze_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control of the above."""
    monkeypatch.setattr(Origins, "refusal", lambda self, method, headers: "")

    async def scenario(opened: Opened) -> None:
        browser = await opened.logged_in()
        assert (await browser.post(ACTS, FREEZE, Origin="http://evil.example", Host="evil")).status_code == 200
        assert opened.served.session._core.account.tree.frozen == "an audit"

    run_cockpit(tmp_path, scenario)


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_a_form_cannot_be_sent(kind: str, tmp_path: Path) -> None:
    async def scenario(opened: Opened) -> None:
        browser = await opened.logged_in()
        assert (await browser.post(ACTS, FREEZE, **{"Content-Type": kind})).status_code == 415
        for body in (b"", b"[" * 5000, b"{}", b'{"act":"melt"}', b'{"act":"freeze","why":""}', b"\xff", b"1" * 20_000):
            headers = {"X-CSRF-Token": browser.csrf, "Origin": ORIGIN, "Content-Type": "application/json"}
            reply = await browser.client.post(ACTS, content=body, headers=headers)
            assert reply.status_code in (400, 413, 422), body
            assert len(reply.text) < 300
        assert opened.served.charges == 0

    run_cockpit(tmp_path, scenario)


def test_every_response_has_the_headers(tmp_path: Path) -> None:
    async def scenario(opened: Opened) -> None:
        browser = await opened.logged_in()
        replies: list[httpx.Response] = [
            await browser.get(path) for path in ("/", "/cockpit.js", "/api/state", "/none")
        ]
        replies += [await browser.get("/", Host="evil"), await browser.post(ACTS, {}), await browser.post("/login", 1)]
        for reply in replies:
            for name, value in protections.HEADERS.items():
                assert reply.headers[name] == value, reply
            assert "server" not in reply.headers
        assert [reply.status_code for reply in replies] == [200, 200, 200, 404, 403, 400, 400]

    run_cockpit(tmp_path, scenario)


def test_the_policy_allows_no_inline_script_and_no_frame() -> None:
    rules = dict(rule.split(" ", 1) for rule in POLICY.split("; "))
    assert rules["default-src"] == rules["frame-ancestors"] == rules["base-uri"] == "'none'"
    assert "unsafe" not in POLICY
    assert {rules[name] for name in ("script-src", "style-src", "connect-src", "form-action")} == {"'self'"}


# --- what it shows and does -----------------------------------------------------------------------------------------


def test_the_page_shows_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(opened: Opened) -> None:
        browser = await opened.logged_in("bob", "auditor")
        await opened.served.post(opened.served.count("a"))
        session = opened.served.session
        session.above_threshold(50, epsilon=0.05, name="scan").ask(session.frame.count())
        stored = session.ledger.stored(range(1, opened.served.charges + 1))
        noisy = json.loads(str(stored[0]["result"]))["values"][0]
        shown = (await browser.get("/api/state")).text + (await browser.get(LOG)).text
        assert noisy not in shown
        assert "above" not in shown.replace("above-threshold", "")
        assert "count of rows" in shown
        (table,) = (await browser.state())["tables"]
        assert table["moments"][1]["text"].startswith("1. ana: count of rows (")
        assert table["gauges"][0]["value"] == session.headroom
        assert table["moments"][-1]["spent"] >= 1 - session._core.account.filter.headroom
        assert (await browser.state())["tokens"] == []
        described = log_rows.words_of
        monkeypatch.setattr(
            log_rows, "words_of", lambda account, charge: f"{described(account, charge)} {charge.measurement}"
        )
        assert noisy in (await browser.get(LOG)).text  # the control

    run_cockpit(tmp_path, scenario)


def test_page_and_terminal_read_the_same_of_a_table(tmp_path: Path) -> None:
    """The terminal reads the second route, and the reply to an act."""

    async def scenario(opened: Opened) -> None:
        browser = await opened.logged_in()
        await opened.served.post(opened.served.count("a", mu="1/50"))
        await requested(opened, browser, "b")
        curator = opened.served.of("carl", "curator")
        (table,) = (await browser.state())["tables"]
        assert (await curator.get("/v3/tables/people/state")).json() == table
        assert table["parts"]
        assert table["requests"]
        assert table["moments"]
        body = b'{"act":"freeze","why":"an audit"}'
        headers = {**curator.headers, "Content-Type": "application/json"}
        act = await curator.client.post("/v3/tables/people/acts", content=body, headers=headers)
        (table,) = (await browser.state())["tables"]
        assert act.json() == table
        assert table["frozen"] == "an audit"

    run_cockpit(tmp_path, scenario, division=PARTS)


@pytest.mark.parametrize(
    "changes",
    [
        {"budget": None},
        {"budget": dpnb.Budget(1.0, 1e-6), "filter": "zcdp"},
        {"budget": dpnb.Budget.pure(1)},
        {"budget": dpnb.Budget.gdp(1, pure_epsilon=0.1)},
        {"accounting": "individual"},
    ],
    ids=str,
)
def test_every_kind_of_budget_is_shown(changes: dict[str, Any], tmp_path: Path) -> None:
    session = open_people(tmp_path / "people.dpnb", **changes)

    async def scenario(opened: Opened) -> None:
        browser = await opened.logged_in()
        (before,) = (await browser.state())["tables"]
        if changes.get("budget") == dpnb.Budget.pure(1):
            session.above_threshold(50, epsilon=0.05, name="scan")
        else:
            assert (await opened.served.post(opened.served.count("a"))).status_code == 200
        (table,) = (await browser.state())["tables"]
        assert table["fault"] is None
        assert table["spent"] != before["spent"]
        assert len(table["moments"]) > 1
        has_budget = changes.get("budget", "") is not None
        assert [one["spent"] is not None for one in table["moments"]] == [has_budget] * len(table["moments"])

    run_cockpit(tmp_path, scenario, session=session)


def test_an_act_is_a_row_of_the_chain(tmp_path: Path) -> None:
    async def scenario(opened: Opened) -> None:
        browser = await opened.logged_in()
        assert (await browser.post(ACTS, FREEZE)).json()["frozen"] == "an audit"
        assert (await browser.post(ACTS, {"act": "unfreeze"})).json()["frozen"] is None
        rows = (await browser.get(LOG)).json()["rows"]
        assert [(row["actor"], row["words"]) for row in rows] == [
            ("eve", "table frozen: an audit"),
            ("eve", "table no longer frozen"),
        ]
        assert (await browser.get(f"{LOG}?after=1")).json()["rows"] == rows[1:]
        assert (await browser.get(f"{LOG}?after=-1")).status_code == 400
        assert (await browser.get("/api/tables/none/log")).status_code == 404

    run_cockpit(tmp_path, scenario)
    assert audit(str(tmp_path / "people.dpnb")).is_fine


def test_a_freeze_does_not_wait_for_the_requests_of_analysts(tmp_path: Path) -> None:
    """Requests that wait in the table's thread would be charged before it."""

    async def scenario(opened: Opened) -> None:
        browser, go_on = await opened.logged_in(), threading.Event()
        running = opened.served.service.tables["people"].table.worker.submit("bob", lambda: go_on.wait(LIMIT)).future
        try:
            reply = await browser.post(ACTS, FREEZE)
            assert reply.json()["frozen"] == "an audit"
            assert not running.done()
        finally:
            go_on.set()

    run_cockpit(tmp_path, scenario)


def test_a_curator_makes_and_revokes_tokens_of_analysts_and_auditors_only(tmp_path: Path) -> None:
    async def scenario(opened: Opened) -> None:
        curator, owner = await opened.logged_in(), await opened.logged_in("olga", "owner")

        async def change(browser: Browser, act: str, name: str, role: str = "auditor", **more: str) -> httpx.Response:
            return await browser.post("/api/tokens", {"act": act, "name": name, "role": role, **more})

        for role in ("curator", "owner"):
            assert (await change(curator, "new", "al", role)).status_code == 403
        assert (await change(curator, "revoke", "olga")).status_code == 403
        assert (await change(curator, "revoke", "nobody")).status_code == 404
        for name in ("../al", "<b>", "al\n", "(settings)"):
            assert (await change(curator, "new", name)).status_code == 422
        assert (await change(curator, "new", "al", expires="soon")).status_code == 422
        made = (await change(curator, "new", "al", expires="30d")).json()["token"]
        assert made.startswith("dpnb_")
        assert (await change(curator, "new", "al")).status_code == 422  # who has one
        assert (await change(owner, "new", "cy", "curator")).status_code == 200
        holders = {one["name"]: one["role"] for one in (await owner.state())["tokens"]}
        assert holders == {"al": "auditor", "ana": "analyst", "cy": "curator", "eve": "curator", "olga": "owner"}
        assert (await change(curator, "extend", "al", expires="90d")).json()["token"] == ""
        ends = {one["name"]: one["expires"] for one in (await owner.state())["tokens"]}
        assert ends["al"] > (tokens.now() + timedelta(days=89)).isoformat()
        for name in ("eve", "olga", "cy"):  # their own, or of another curator or the owner
            assert (await change(curator, "extend", name)).status_code == 403
        assert (await change(curator, "extend", "al", expires="soon")).status_code == 422
        assert (await change(curator, "extend", "nobody")).status_code == 404
        assert (await change(owner, "extend", "olga")).status_code == 200
        assert (await change(curator, "revoke", "al")).json()["token"] == ""
        assert "al" not in {one["name"] for one in (await owner.state())["tokens"]}

    run_cockpit(tmp_path, scenario)


@pytest.mark.parametrize("is_broken", [False, True])
def test_a_token_revoked_while_the_body_is_sent_does_nothing(
    is_broken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_broken:  # control: the login is looked at when the request arrives only
        monkeypatch.setattr(Logins, "checker", lambda self, cookie, csrf: lambda: True)
    body = app._body

    async def scenario(opened: Opened) -> None:
        browser = await opened.logged_in()
        new_token(browser.served.tokens, "ana")

        async def slow(*arguments: Any) -> bytes:
            revoke_tokens(browser.served.tokens, "eve")
            return await body(*arguments)

        for path, content in ((ACTS, FREEZE), ("/api/tokens", {"name": "ana"})):
            monkeypatch.setattr(app, "_body", slow)
            assert (await browser.post(path, content)).status_code == (200 if is_broken else 401)
            monkeypatch.setattr(app, "_body", body)
            browser = await opened.logged_in()
        assert (opened.served.session._core.account.tree.frozen is not None) == is_broken

    run_cockpit(tmp_path, scenario)


def test_the_log_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_rows, "MAX_ROWS", 2)
    monkeypatch.setattr(app, "PAGES", 2)

    async def scenario(opened: Opened) -> None:
        browser = await opened.logged_in()
        for number in range(9):
            await opened.served.post(opened.served.count(str(number), mu=f"1/{30 - number}"))
        first, second, third = [(await browser.get(f"{LOG}?after={after}")).json() for after in (0, 4, 8)]
        assert [len(one["rows"]) for one in (first, second, third)] == [4, 4, 1]
        assert [one["more"] for one in (first, second, third)] == [True, True, False]
        assert [row["id"] for page in (first, second, third) for row in page["rows"]] == list(range(1, 10))

    run_cockpit(tmp_path, scenario)


def test_a_new_token_replaces_the_old_one(tmp_path: Path) -> None:
    async def scenario(opened: Opened) -> None:
        browser = await opened.logged_in()
        served = opened.served
        assert (await served.get("/v3/tables/people")).status_code == 200
        reply = await browser.post("/api/tokens", {"name": "ana"})
        assert (await served.get("/v3/tables/people")).status_code == 401
        served.token = reply.json()["token"]
        assert (await served.get("/v3/tables/people")).status_code == 200
        assert served.token not in (await browser.get("/api/state")).text
        assert (await browser.post("/api/tokens", {"name": "nobody"})).status_code == 404

    run_cockpit(tmp_path, scenario)


def test_a_curator_cannot_become_the_owner(tmp_path: Path) -> None:
    async def scenario(opened: Opened) -> None:
        curator, owner = await opened.logged_in(), await opened.logged_in("olga", "owner")
        await opened.logged_in("carl", "curator")
        may = {one["name"]: one["may_rotate"] for one in (await curator.state())["tokens"]}
        assert may == {"ana": True, "carl": False, "eve": True, "olga": False}
        may_extend = {one["name"]: one["may_extend"] for one in (await curator.state())["tokens"]}
        assert may_extend == {**may, "eve": False}  # not their own
        for name, allowed in may.items():
            if name != "eve":
                code = (await curator.post("/api/tokens", {"name": name})).status_code
                assert code == (200 if allowed else 403), name
        assert (await owner.post("/api/tokens", {"name": "carl"})).status_code == 200
        assert (await curator.post("/api/tokens", {"name": "eve"})).status_code == 200
        assert (await curator.get("/api/state")).status_code == 401  # the login was that of the old token

    run_cockpit(tmp_path, scenario)


def test_the_stream_tells_of_every_change(tmp_path: Path) -> None:
    async def scenario(opened: Opened) -> None:
        browser = await opened.logged_in()
        stream = opened.cockpit._live.stream(lambda: True)

        async def told() -> None:
            async with asyncio.timeout(LIMIT):
                while await anext(stream) != b"data: changed\n\n":
                    pass

        await told()
        await opened.served.post(opened.served.count("a"))
        await told()
        await browser.post(ACTS, FREEZE)
        await told()
        await browser.post("/api/tokens", {"name": "ana"})
        await told()
        opened.cockpit.end_streams()
        async with asyncio.timeout(LIMIT):
            assert [event async for event in stream if event.startswith(b"data")] == []

    run_cockpit(tmp_path, scenario)


def test_a_ledger_that_cannot_be_read_is_a_fault_of_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(opened: Opened) -> None:
        browser: Browser = await opened.logged_in()
        opened.served.session.ledger.close()
        (table,) = (await browser.state())["tables"]
        assert "closed" in table["fault"]
        assert isinstance(opened.cockpit, Cockpit)

    run_cockpit(tmp_path, scenario)


# --- requests and parts of the budget -------------------------------------------------------------------------------

PARTS = DivisionSettings(
    "reserved",
    (
        PartSettings("project", "aging", None, AmountSettings(Fraction(1, 2))),
        PartSettings("analyst", "cleo", None, AmountSettings(Fraction(1, 4))),
        PartSettings("analyst", "ana", "aging", AmountSettings(Fraction(1, 2)), AmountSettings(Fraction(1, 2))),
    ),
)


async def requested(opened: Opened, browser: Browser, number: str, mu: str = "1/10", why: str = "a paper") -> Any:
    """What the page shows of a new request of ana."""
    query = opened.served.session.frame.count()
    call = RequestBudget((Release(query.plan, query.view, Target("mu", Fraction(mu))),), why)
    reply = await opened.served.post(opened.served.body(number, call))
    assert reply.status_code == 200, reply.text
    (table,) = (await browser.state())["tables"]
    return table["requests"][0]


async def the_statement_is_true(browser: Browser, folder: Path) -> None:
    for form in ("html", "json"):
        reply = await browser.get(f"{STATEMENT}?format={form}")
        assert reply.status_code == 200, reply.text
        assert reply.headers["content-type"].startswith("text/plain")
        file = folder / f"statement.{form}"
        file.write_text(reply.text, "utf-8")
        assert verify(str(file), str(folder / "people.dpnb")).is_fine
    assert (await browser.get(f"{STATEMENT}?format=exe")).status_code == 400


def components(amount: dict[str, Any]) -> dict[str, Any]:
    """An amount as the page sends it."""
    return {name: value for name, value in amount.items() if name != "words"}


async def part_of(browser: Browser, name: str) -> Any:
    (table,) = (await browser.state())["tables"]
    return next(part for part in table["parts"] if part["name"] == name)


def test_a_request_is_approved_in_part_and_another_declined(tmp_path: Path) -> None:
    async def scenario(opened: Opened) -> None:
        browser = await opened.logged_in()
        asked = await requested(opened, browser, "a")
        assert (asked["analyst"], asked["why"], asked["status"]) == ("ana", "a paper", "pending")
        assert asked["queries"][0]["words"] == "count of rows"
        assert asked["spent"]["words"] == "nothing"
        cap = (await part_of(browser, "ana"))["cap"]
        half = {"mu": "0.05", "discovery_delta": None, "pure_epsilon": None}
        approval = {
            "act": "approve",
            "request": asked["number"],
            "digest": asked["digest"],
            "amount": half,
            "why": "ok",
        }
        wrong = {**approval, "digest": "0" * 64}
        assert (await browser.post(ACTS, wrong)).status_code == 422
        assert (await part_of(browser, "ana"))["cap"] == cap
        assert (await browser.post(ACTS, approval)).status_code == 200
        assert (await part_of(browser, "ana"))["cap"] != cap
        assert (await browser.post(ACTS, approval)).status_code == 422  # it is decided
        await the_statement_is_true(browser, tmp_path)
        other = await requested(opened, browser, "b", mu="1/11")
        whole = {
            **approval,
            "request": other["number"],
            "digest": other["digest"],
            "amount": components(other["largest"]),
        }
        assert (await browser.post(ACTS, whole)).status_code == 200  # what the dialog is filled with
        other = await requested(opened, browser, "c", mu="1/6")
        decline = {"act": "decline", "request": other["number"], "digest": other["digest"], "why": "too much"}
        table = (await browser.post(ACTS, decline)).json()
        shown = [(one["status"], one["decided_by"]) for one in table["requests"]]
        assert shown == [("declined", "eve"), ("approved in part", "eve"), ("approved in part", "eve")]
        assert {one["cap_after"] for one in table["requests"]} == {None}
        await the_statement_is_true(browser, tmp_path)

    run_cockpit(tmp_path, scenario, division=PARTS)
    assert audit(str(tmp_path / "people.dpnb")).is_fine


@pytest.mark.parametrize("until", ["2999-01-01T00:00:00Z", None])
def test_the_page_is_told_of_the_end_of_an_approval(
    until: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No row is written then, and the cap is lower."""

    async def scenario(opened: Opened) -> None:
        browser = await opened.logged_in()
        asked = await requested(opened, browser, "a")
        approval = {"act": "approve", "request": asked["number"], "digest": asked["digest"], "until": until}
        assert (await browser.post(ACTS, approval)).status_code == 200
        served = opened.served.service.tables["people"]
        before, shown = app.version_of(served), await part_of(browser, "ana")
        assert app.version_of(served) == before
        monkeypatch.setattr(Ledger, "time", "2999-01-01T00:00:00.000Z")
        assert (app.version_of(served) != before) == (until is not None)
        assert (await part_of(browser, "ana") != shown) == (until is not None)

    run_cockpit(tmp_path, scenario, division=PARTS)


@pytest.mark.parametrize("mode", ["reserved", "pooled"])
def test_each_project_is_followed_by_its_analysts(mode: Mode, tmp_path: Path) -> None:
    limit: dict[str, Any] = {"ceiling" if mode == "reserved" else "cap": AmountSettings(Fraction(1, 8))}
    named = (("project", "flu", None), ("project", "age", None), ("analyst", "ana", None))
    named += (("analyst", "bob", "age"), ("analyst", "cleo", "flu"), ("analyst", "dan", "age"))
    parts = tuple(PartSettings(level, name, project, **limit) for level, name, project in named)

    async def scenario(opened: Opened) -> None:
        browser = await opened.logged_in()
        (table,) = (await browser.state())["tables"]
        shown = [(one["name"], one["project"]) for one in table["parts"]]
        in_age = [("bob", "age"), ("dan", "age")]
        assert shown == [("flu", None), ("cleo", "flu"), ("age", None), *in_age, ("ana", None)]
        assert {one["has_cap"] for one in table["parts"] if one["level"] == "project"} == {mode == "pooled"}

    run_cockpit(tmp_path, scenario, division=DivisionSettings(mode, parts))


def test_parts_are_shown_and_moved_revoked_and_restored(tmp_path: Path) -> None:
    async def scenario(opened: Opened) -> None:
        browser = await opened.logged_in()
        (table,) = (await browser.state())["tables"]
        assert table["mode"] == "reserved"
        assert [(one["level"], one["name"], one["has_cap"]) for one in table["parts"]] == [
            ("project", "aging", False),
            ("analyst", "ana", True),
            ("analyst", "cleo", True),
        ]
        assert (await opened.served.post(opened.served.count("a"))).status_code == 200
        ana = await part_of(browser, "ana")
        assert ana["share"] + ana["headroom"] >= 0.5
        assert ana["limit"]["mu"] is not None
        who = {"level": "analyst", "name": "ana"}
        small = {"mu": "0.11", "discovery_delta": None, "pure_epsilon": None}
        assert (await browser.post(ACTS, {"act": "move_cap", **who, "cap": small})).status_code == 200
        assert float((await part_of(browser, "ana"))["limit"]["mu"]) == pytest.approx(0.11)
        for wrong in ("nan", "-1", "1e999", "x" * 400):
            moved = {"act": "move_cap", **who, "cap": {"mu": wrong}}
            assert (await browser.post(ACTS, moved)).status_code == 422, wrong
        unchanged = {"act": "move_cap", **who, "cap": None}
        assert (await browser.post(ACTS, unchanged)).status_code == 200
        ceiling = (await part_of(browser, "ana"))["limit"]  # what the dialog is filled with
        assert (await browser.post(ACTS, {**unchanged, "cap": components(ceiling)})).status_code == 200
        assert (await browser.post(ACTS, {"act": "revoke", **who})).status_code == 200
        assert (await part_of(browser, "ana"))["is_revoked"]
        assert (await opened.served.post(opened.served.count("b", mu="1/20"))).status_code != 200
        assert (await browser.post(ACTS, {"act": "restore", **who})).status_code == 200
        assert not (await part_of(browser, "ana"))["is_revoked"]
        log = [row["words"] for row in (await browser.get(LOG)).json()["rows"] if row["actor"] == "eve"]
        assert log[-2:] == [f"analyst ana: part of the budget {act}d" for act in ("revoke", "restore")]

    run_cockpit(tmp_path, scenario, division=PARTS)
