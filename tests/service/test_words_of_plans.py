"""What curators read of a plan that lies: its words, and on request the whole of it, never what was answered."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpnb
from dpnb._core.history import words as launch_text
from dpnb._plan.expressions.nodes import Column, Compare, Expression, Literal, Lookup, Or
from dpnb._plan.measurements import (
    ColumnsView,
    Count,
    JointAggregation,
    NamedColumn,
    PlainView,
    Sum,
    WeightedAggregation,
)
from dpnb._plan.plan import GroupLevel, Plan
from dpnb._request import AnyRequest, LaunchMechanism, PartitionTable, ReduceNoise, Release, RequestBudget, SelectGroups
from dpnb._target import Target
from dpnb.curator.audit import audit
from dpnb.ledger.charge import RELEASE, TABLE_FILES
from dpnb.service.configuration.parts import AmountSettings, DivisionSettings, PartSettings
from dpnb.service.curation import rows as log_rows
from dpnb.session.disclosure.building import report_of
from service.cockpits import Opened, built, run_cockpit
from service.served import Served, content, run_served

__all__ = ["built"]

TARGET = Target("mu", Fraction(1, 100))
NOTE = Column("note")
CITY = Lookup("city", (NOTE,), (("hiv",), ("flu",)), ("a", "b"))
NUMBER = Lookup("city", (NOTE,), (("hiv",), ("flu",)), (1.0, 0.0), 0.0, 1.0)
FILTERED = Plan(Count(), Compare("==", CITY, Literal("a")))
GROUPED = Plan(Count(), group_by=(GroupLevel("city", NOTE),))
TITLED = Plan(JointAggregation((WeightedAggregation(Sum(NUMBER)),)))
LIES: dict[str, AnyRequest] = {
    "lookup": Release(FILTERED, PlainView(), TARGET),
    "level": Release(GROUPED, PlainView(), TARGET),
    "title": Release(TITLED, ColumnsView((NamedColumn("city", 0),), "description of city"), TARGET),
    "selection": SelectGroups(GROUPED, 1, Fraction(1, 100)),
    "partition": LaunchMechanism("by city", PartitionTable("", GROUPED.group_by[0])),
    "noise-reduction": LaunchMechanism("count of rows by city", ReduceNoise(GROUPED, PlainView(), Fraction(1, 100))),
}
AUDIT = "/v3/tables/people/audit"
PLAN = "/v3/tables/people/plan?row="


def session(folder: Path, **changes: Any) -> dpnb.Session:
    table = pd.DataFrame({"note": ["hiv", "flu"] * 20, "city": ["x", "y"] * 20})
    schema = {"note": dpnb.Categories(["hiv", "flu"]), "city": dpnb.Categories(["x", "y"])}
    arguments = {"budget": dpnb.Budget.gdp(1), "schema": schema, "ledger": folder / "people.dpnb", **changes}
    return dpnb.Session(table, name="people", **arguments)


def test_the_words_of_a_lie_name_the_column_that_is_read(tmp_path: Path) -> None:
    async def scenario(served: Served) -> None:
        eve = served.of("eve", "auditor")
        for lie, call in LIES.items():
            reply = content(await served.post(served.body(lie, call)))
            assert reply["reply"] == "done", (lie, reply)
        rows = content(await eve.get(AUDIT))["rows"]
        assert len(rows) == len(LIES)
        for row in rows:
            assert "note" in row["words"], row
            (plan,) = content(await eve.get(f"{PLAN}{row['id']}"))["plans"]
            assert '"note"' in plan, plan
        logged = served.session.log["query"]
        assert all("note" in words for words in logged), logged
        report = report_of(str(tmp_path / "people.dpnb"))
        assert all("note" in one.query for one in report.releases)

    run_served(tmp_path, scenario, session(tmp_path))


def test_a_name_alone_would_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a launch as it was described before."""

    async def scenario(served: Served) -> None:
        assert content(await served.post(served.body("a", LIES["partition"])))["reply"] == "done"
        monkeypatch.setattr(launch_text, "_about", lambda arguments: "")
        (row,) = content(await served.of("eve", "auditor").get(AUDIT))["rows"]
        assert "note" not in row["words"]

    run_served(tmp_path, scenario, session(tmp_path))


def test_a_request_for_budget_is_shown_with_its_plan_which_a_decision_names(tmp_path: Path) -> None:
    condition: Expression = Compare("==", Column("city"), Literal("x"))
    for _ in range(6):
        condition = Or(condition, condition)
    long = Plan(Count(), condition, GROUPED.group_by)
    releases = tuple(Release(plan, PlainView(), TARGET) for plan in (FILTERED, long))

    async def scenario(opened: Opened) -> None:
        served = opened.served
        reply = await served.post(served.body("a", RequestBudget(releases, "the cities")))
        assert content(reply)["reply"] == "done", reply.text
        eve = await opened.logged_in()
        (request,) = (await eve.state())["tables"][0]["requests"]
        for query in request["queries"]:
            assert "note" in query["words"]
            assert len(query["words"]) <= 1000
        assert request["queries"][1]["words"].endswith("...; reads note, city")
        shown = (await eve.get(f"/api/tables/people/plan?row={request['number']}")).json()["plans"]
        for text, release in zip(shown, releases, strict=True):
            read = json.loads(text)
            assert read["reads"][0] == "note"
            assert Plan.from_json(json.dumps(read["plan"])) == release.plan
            assert read["target"] == {"kind": "mu", "amount": "1/100"}
        assert audit(str(tmp_path / "people.dpnb")).is_fine

    half = AmountSettings(Fraction(1, 2))
    parts = DivisionSettings(
        "reserved", (PartSettings("analyst", "ana", ceiling=half, cap=AmountSettings(Fraction(1, 100))),)
    )
    run_cockpit(tmp_path, scenario, session=session(tmp_path), division=parts)


def test_a_plan_has_no_answer_and_a_limited_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(opened: Opened) -> None:
        served, eve = opened.served, await opened.logged_in()
        await served.post(served.body("a", LIES["level"]))
        scan = served.session.above_threshold(50, epsilon=0.05, name="scan\x1b[2J")
        scan.ask(served.session.frame.count())
        charges = {one.kind: one for one in served.session.ledger.charges()}
        path = "/api/tables/people/plan?row="
        (text,) = (await eve.get(f"{path}{charges[RELEASE].id}")).json()["plans"]
        assert set(json.loads(text)) == {"reads", "plan", "view", "target"}
        for kind in ("launch", "comparison"):
            (text,) = (await eve.get(f"{path}{charges[kind].id}")).json()["plans"]
            assert "noise_token" not in text
            assert '"above"' not in text
            assert "\x1b" not in text
        monkeypatch.setattr(log_rows, "MAX_CHARACTERS", 50)
        (text,) = (await eve.get(f"{path}{charges[RELEASE].id}")).json()["plans"]
        assert text.startswith('{\n "reads": ["note"],')
        assert text.endswith("more characters")
        for wrong in ("0", "99", "-1", "x", "1" * 20):
            reply = await eve.get(f"{path}{wrong}")
            assert reply.status_code == (422 if wrong in ("0", "99") else 400), wrong

    run_cockpit(tmp_path, scenario, session=session(tmp_path))


def test_rows_that_no_analyst_requested_have_no_plan() -> None:
    assert TABLE_FILES not in log_rows.HAVE_PLANS
