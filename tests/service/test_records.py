"""The records of a table on the curator's page: versions, the last copy, audits, figures, statements of one analyst."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpnb
from dpnb._request import Release, RequestBudget
from dpnb._target import Target
from dpnb.curator.verification import verify
from dpnb.ledger import Ledger
from dpnb.service.cockpit import records as audits
from dpnb.service.configuration.parts import AmountSettings, DivisionSettings, PartSettings
from dpnb.session.backup import back_up
from dpnb.session.disclosure.building import report_about
from service.cockpits import ACTS, LOG, Browser, Opened, built, run_cockpit
from service.served import SECRET, open_people
from service.test_cockpit import PARTS, part_of, requested
from waiting import LIMIT

__all__ = ["built"]
pytestmark = pytest.mark.usefixtures("built")

RECORDS, AUDITS = "/api/tables/people/records", "/api/tables/people/audits"
STATEMENT = "/api/tables/people/statement"


async def records(browser: Browser) -> Any:
    reply = await browser.get(RECORDS)
    assert reply.status_code == 200, reply.text
    return reply.json()


async def audited(browser: Browser) -> Any:
    """The result of a new audit."""
    assert (await browser.post(AUDITS, {})).json()["audit"]["ended"] is None
    async with asyncio.timeout(LIMIT):
        while (audit := (await records(browser))["audit"])["ended"] is None:
            await asyncio.sleep(0.05)
    return audit


def test_an_audit_runs_in_a_process_of_its_own_and_the_page_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[dict[str, str]] = []
    create = asyncio.create_subprocess_exec

    async def noted(*command: str, env: dict[str, str], **options: Any) -> Any:
        given.append(env)
        return await create(*command, env=env, **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", SECRET)
    monkeypatch.setenv("DPNB_DATABASE_PASSWORD", SECRET)

    async def scenario(opened: Opened) -> None:
        browser = await opened.logged_in("al", "auditor")
        await opened.served.post(opened.served.count("a"))
        assert (await records(browser))["audit"] is None
        told = opened.cockpit._version()
        audit = await audited(browser)
        assert opened.cockpit._version() != told
        assert (audit["actor"], audit["is_fine"]) == ("al", True)
        assert audit["text"].endswith("No problem found.")
        assert "1 row, the chain of hashes is intact" in audit["text"]
        assert SECRET not in str(given)
        assert "PATH" in given[0]

    run_cockpit(tmp_path, scenario)


def test_one_audit_of_a_table_runs_at_a_time_and_ends_with_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []

    async def endless(path: str) -> tuple[int, str]:
        begun.append(path)
        await asyncio.Event().wait()
        return 0, ""

    monkeypatch.setattr(audits, "_audited", endless)

    async def scenario(opened: Opened) -> None:
        browser = await opened.logged_in()
        first = (await browser.post(AUDITS, {})).json()["audit"]
        assert (await browser.post(AUDITS, {})).json()["audit"] == first
        await opened.served.post(opened.served.count("a"))  # nobody waits for it
        opened.cockpit.end_streams()
        async with asyncio.timeout(LIMIT):
            while (audit := (await records(browser))["audit"])["ended"] is None:
                await asyncio.sleep(0.01)
        assert (audit["is_fine"], audit["text"]) == (False, "The audit was ended before it had a result.")
        assert begun == [str(tmp_path / "people.dpnb")]

    run_cockpit(tmp_path, scenario)


def test_figures_are_not_for_an_auditor(tmp_path: Path) -> None:
    async def scenario(opened: Opened) -> None:
        await opened.served.post(opened.served.count("a"))
        curator, auditor = await opened.logged_in(), await opened.logged_in("al", "auditor")
        shown = {one["words"]: one["value"] for one in (await records(curator))["figures"]}
        assert [value for words, value in shown.items() if words.startswith("Requests, ")] == ["1"]
        assert shown["Share of the budget that is left"].endswith("%")
        assert shown["Resident memory size"].endswith(" MB")
        assert (await records(auditor))["figures"] == []

    run_cockpit(tmp_path, scenario)


def test_the_last_copy_is_shown_if_it_is_of_this_ledger(tmp_path: Path) -> None:
    async def scenario(opened: Opened) -> None:
        browser, ledger = await opened.logged_in(), opened.served.session.ledger.path
        assert (await records(browser))["backup"] is None
        await opened.served.post(opened.served.count("a"))
        back_up(ledger, str(tmp_path / "copies"))
        await opened.served.post(opened.served.count("b", mu="1/20"))
        found = await records(browser)
        assert (found["backup"]["rows"], found["rows"], found["backup"]["is_known"]) == (1, 2, True)
        note = Path(f"{ledger}-backup")
        note.write_text(note.read_text("ascii").replace('"rows":1', '"rows":2'), "ascii")  # of another state
        assert not (await records(browser))["backup"]["is_known"]

    run_cockpit(tmp_path, scenario)


def test_the_versions_are_listed_with_what_changed(tmp_path: Path) -> None:
    first = open_people(tmp_path / "people.dpnb", version="2025")
    first.frame.count().release(mu=0.1)
    first.ledger.close()
    schema = {"age": dpnb.Bounded(0, 120, integer=True)}
    session = open_people(tmp_path / "people.dpnb", version="2026", schema=schema)

    async def scenario(opened: Opened) -> None:
        browser = await opened.logged_in()
        (before,) = (await records(browser))["versions"][1:]
        assert (before["name"], before["requests"], before["changes"]) == ("2025", 1, [])
        await opened.served.post(opened.served.count("a"))
        now, _ = (await records(browser))["versions"]
        assert (now["name"], now["requests"]) == ("2026", 1)
        assert now["since"] <= now["last"]
        assert any("-" in one and "'age'" in one and "100" in one and "120" in one for one in now["changes"])

    run_cockpit(tmp_path, scenario, session=session)


def test_the_statement_of_one_analyst_is_about_that_part_alone(tmp_path: Path) -> None:
    async def scenario(opened: Opened) -> None:
        browser = await opened.logged_in("al", "auditor")
        await opened.served.post(opened.served.count("a"))
        reply = await browser.get(f"{STATEMENT}?format=json&analyst=ana")
        assert reply.status_code == 200, reply.text
        assert "cleo" not in reply.text
        (tmp_path / "ana.json").write_text(reply.text, "utf-8")
        assert verify(str(tmp_path / "ana.json"), str(tmp_path / "people.dpnb")).is_fine
        assert "cleo" in (await browser.get(f"{STATEMENT}?format=json")).text  # the control
        assert (await browser.get(f"{STATEMENT}?format=json&analyst=nobody")).status_code == 422

    run_cockpit(tmp_path, scenario, division=PARTS)


WRITE = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')"


def test_a_statement_lets_no_other_process_write_into_a_charge(tmp_path: Path) -> None:
    async def scenario(opened: Opened) -> None:
        await opened.served.post(opened.served.count("a"))
        ledger = opened.served.session.ledger

        def refusal() -> str:
            command = [sys.executable, "-I", "-c", WRITE, ledger.path]
            return subprocess.run(command, capture_output=True, text=True, check=False).stderr

        assert refusal() == ""
        for read, is_locked in (
            (lambda: report_about(ledger, "ana"), True),
            (lambda: Ledger.read_only_copy(ledger.path).close(), False),  # the control
        ):
            with ledger.transaction():
                ledger._file.run("UPDATE head SET id = id")
                read()
                assert ("database is locked" in refusal()) == is_locked

    run_cockpit(tmp_path, scenario, division=PARTS)


def test_requests_and_acts_have_their_own_words_in_the_log(tmp_path: Path) -> None:
    async def scenario(opened: Opened) -> None:
        browser = await opened.logged_in()
        await opened.served.post(opened.served.count("a"))
        asked = await requested(opened, browser, "b", mu="1/9")

        async def last(number: int) -> list[str]:
            return [row["status"] for row in (await browser.get(LOG)).json()["rows"]][-number:]

        assert await last(2) == ["released", "pending"]
        decline = {"act": "decline", "request": asked["number"], "digest": asked["digest"], "why": "no"}
        assert (await browser.post(ACTS, decline)).status_code == 200
        assert await last(3) == ["released", "declined", "recorded"]

    run_cockpit(tmp_path, scenario, division=PARTS)


def test_the_expected_error_of_a_request_follows_from_what_its_analyst_was_released(tmp_path: Path) -> None:
    async def scenario(opened: Opened) -> None:
        browser, session = await opened.logged_in(), opened.served.session
        mean = session.frame["age"].mean()

        async def expected(number: str, mu: str) -> str:
            call = RequestBudget((Release(mean.plan, mean.view, Target("mu", Fraction(mu))),), "a paper")
            assert (await opened.served.post(opened.served.body(number, call))).status_code == 200
            (table,) = (await browser.state())["tables"]
            return str(table["requests"][-1]["queries"][0]["error"])

        cleo = opened.served.of("cleo")  # what another analyst was released does not count
        assert (await cleo.post(cleo.count("d"))).status_code == 200
        assert await expected("a", "1/9") == "unknown until the count of age is released"
        assert (await opened.served.post(opened.served.count("b"))).status_code == 200
        assert "age at 95% (noise)" in await expected("c", "1/8")

    run_cockpit(tmp_path, scenario, division=PARTS)


@pytest.mark.parametrize("mode", ["reserved", "pooled"])
def test_a_cap_is_shown_and_moved_as_a_share(mode: Any, tmp_path: Path) -> None:
    half = AmountSettings(Fraction(1, 2))
    limits: Any = {"ceiling" if mode == "reserved" else "cap": half}
    parts = PartSettings("project", "flu", **limits), PartSettings("analyst", "ana", "flu", **limits)

    async def scenario(opened: Opened) -> None:
        browser = await opened.logged_in()
        assert (await opened.served.post(opened.served.count("a"))).status_code == 200
        whole = opened.served.session._core.account.guarantee.initial_filter.budget.mu_squared
        outer = whole * (Fraction(1, 4) if mode == "reserved" else Fraction(1, 2))
        for share in (0.3, 0.125):
            moved = {"act": "move_cap", "level": "analyst", "name": "ana", "cap": {"share": str(share)}}
            assert (await browser.post(ACTS, moved)).status_code == 200
            ana = await part_of(browser, "ana")
            assert ana["cap_share"] == share
            assert float(ana["of"]["mu"]) ** 2 == pytest.approx(float(outer))
            assert ana["spent_share"] == pytest.approx(float(Fraction(1, 100) / outer), abs=1e-6)
        assert (await browser.post(ACTS, {**moved, "cap": {"mu": "1/9"}})).status_code == 200
        assert (await part_of(browser, "ana"))["cap_share"] is None  # its components are other shares
        assert (await browser.post(ACTS, {**moved, "cap": None})).status_code == 200
        assert (await part_of(browser, "ana"))["cap_share"] is None

    session = open_people(tmp_path / "people.dpnb", budget=dpnb.Budget.gdp(1, discovery_delta=1e-6))
    run_cockpit(tmp_path, scenario, division=DivisionSettings(mode, parts), session=session)
