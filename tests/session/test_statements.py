"""Disclosure statements of sessions of every kind: complete, rounded in the safe direction, and computed again."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Any

import jsonschema
import pandas as pd
import pytest
from msgspec.structs import replace

import dpnb
from dpnb._core.ledger_metadata import NO_BUDGET
from dpnb.accounting import PureGDP
from dpnb.accounting.exact import exact
from dpnb.curator.verification import compare
from dpnb.errors import LedgerError, RequestError
from dpnb.ledger import MEMORY
from dpnb.ledger.replica import RowsCopy
from dpnb.render import report_page
from dpnb.results.disclosure.parts import ReportedRelease
from dpnb.results.disclosure.report import SCHEMA_FILE, Report
from dpnb.session.disclosure.building import report_of
from dpnb.session.disclosure.figures import outcome_with_unit
from session.statements import BOTH, KINDS, Divided, opened, used

SCHEMA = jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text(encoding="utf-8")))


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> dict[str, Any]:
    return KINDS[request.param]


def same(one: Report, other: Report) -> bool:
    return replace(one, written=other.written) == other


# --- every kind of session ------------------------------------------------------------------------------------------


def test_a_statement_of_every_kind_of_session_is_complete_and_follows_from_its_ledger(
    kind: dict[str, Any], tmp_path: Path
) -> None:
    session = used(opened(tmp_path / "clinic.dpnb", **kind))
    report = session.report(answers=True)
    SCHEMA.validate(json.loads(report.to_json()))
    assert Report.from_json(report.to_json()) == report
    assert same(report_of(session.ledger.path, answers=True), report)
    assert compare(report, session.ledger).differences == ()
    requests = [one for one in session.ledger.charges() if one.kind not in ("close", "table_files")]
    assert [one.row for one in report.releases] == [one.id for one in requests]
    assert report.source.head == session.ledger.head
    assert "<!DOCTYPE html>" in report.to_html()
    for text in (*(p for section in report.sections for p in section.paragraphs), report.methods_paragraph):
        assert text
        assert not re.search(r"\bnan\b|\binf\b|None|Fraction|  ", text), text


def test_what_a_statement_says_of_each_budget(kind: dict[str, Any]) -> None:
    session = used(opened(**kind))
    report, budget = session.report(), session.budget
    guarantee = report.guarantee
    assert guarantee.fixed_beforehand is (budget is not None)
    assert guarantee.accounting == session.accounting
    assert (guarantee.on_exhausted is None) is (session.accounting == "worst-case")
    assert report.filter.name == kind.get("filter", "gdp" if budget is not None else "none")
    if budget is None:
        assert report.notice == NO_BUDGET
        assert (guarantee.epsilon, guarantee.delta, guarantee.mu, report.filter.left_share) == (None,) * 4
        assert "No (epsilon, delta) was fixed beforehand" in str(report.sections)
        assert "was fixed when the ledger was created" not in str(report.sections)
        assert "without a budget" in report.methods_paragraph
    else:
        assert "was fixed when the ledger was created" in str(report.sections)
        paragraph = report.methods_paragraph.replace("-Gaussian differential privacy", "-GDP")
        assert guarantee.short in paragraph.replace("-differential privacy", "-DP")


def test_numbers_of_a_guarantee_are_rounded_up(kind: dict[str, Any]) -> None:
    session = used(opened(**kind))
    report, budget = session.report(), session.budget
    guarantee = report.guarantee
    for one, charge in zip(
        report.releases, [c for c in session.ledger.charges() if c.kind not in ("close", "table_files")], strict=True
    ):
        loss = charge.loss
        if isinstance(loss, dpnb.accounting.GDP) and one.mu is not None:
            assert exact(one.mu) ** 2 >= loss.mu_squared
        assert exact(one.delta) >= loss.delta
    if budget is None:
        return
    for shown, whole in ((guarantee.epsilon, budget.epsilon), (guarantee.delta, budget.delta)):
        assert shown is None or whole is None or exact(shown) >= whole
    if guarantee.mu is not None:
        limit = session._core.account.guarantee.initial_filter.budget
        assert exact(guarantee.mu) ** 2 >= limit.mu_squared  # type: ignore[union-attr]
    if guarantee.factor is not None and guarantee.epsilon is not None:
        assert guarantee.factor >= math.exp(guarantee.epsilon)
    spent, left = (
        Fraction(str(text).rstrip("%")) / 100 for text in (report.filter.spent_share, report.filter.left_share)
    )
    headroom = session._core.account.sync().filter.headroom
    assert left <= exact(headroom)
    assert spent >= 1 - exact(headroom) - Fraction(1, 10**12)


def test_a_budget_in_gdp_states_an_epsilon_and_delta_that_it_implies() -> None:
    guarantee = opened(budget=dpnb.Budget.gdp(0.5, discovery_delta=1e-7)).report().guarantee
    implied = guarantee.implied
    assert implied is not None
    assert implied.epsilon >= dpnb.accounting.conversions.epsilon_from_mu(0.5, delta=1e-6)
    assert exact(implied.delta) == exact(1e-6) + exact(1e-7)
    stated = re.search(r"implies \((.*?), (.*?)\)-diff", opened(budget=dpnb.Budget.gdp(0.5)).report().methods_paragraph)
    assert stated is not None
    assert float(stated[1]) >= dpnb.accounting.conversions.epsilon_from_mu(0.5, delta=1e-6)
    assert opened(budget=BOTH).report().guarantee.implied is None


@pytest.mark.parametrize("mu", [0.1, 0.5, 2])
def test_the_example_of_an_outcome_is_a_bound(mu: float) -> None:
    """Against a release of all of the budget, whose outcome is the most telling one; and it is a close bound."""
    normal = NormalDist()
    guarantee = opened(budget=dpnb.Budget.gdp(mu)).report().guarantee
    bound = outcome_with_unit(guarantee, 0.1)
    attained = normal.cdf(normal.inv_cdf(0.1) + mu)
    assert bound is not None
    assert attained <= bound <= attained * 1.0001
    enforced = opened(budget=dpnb.Budget(epsilon=1, delta=1e-6)).report().guarantee
    assert outcome_with_unit(enforced, 0.1) == pytest.approx(normal.cdf(normal.inv_cdf(0.1) + (enforced.mu or 0)))
    by_epsilon = outcome_with_unit(opened(budget=dpnb.Budget(1, 1e-6), filter="zcdp").report().guarantee, 0.1)
    assert by_epsilon is not None
    assert 0.1 * math.e + 1e-6 <= by_epsilon <= 0.2719
    pure = outcome_with_unit(opened(budget=dpnb.Budget.pure(0.3)).report().guarantee, 0.1)
    assert pure is not None
    assert 0.1 * math.exp(0.3) <= pure <= 0.135
    reserve = outcome_with_unit(opened(budget=dpnb.Budget.gdp(0.5, pure_epsilon=0.1)).report().guarantee, 0.1)
    assert reserve is not None
    assert math.exp(0.1) * 0.1 < normal.cdf(normal.inv_cdf(0.1) + 0.5) < reserve < 0.5
    assert outcome_with_unit(opened(budget=None).report().guarantee, 0.1) is None
    assert outcome_with_unit(opened(budget=dpnb.Budget(4, 1e-6), filter="zcdp").report().guarantee, 0.1) is None


# --- what is in it --------------------------------------------------------------------------------------------------


def test_no_answer_is_in_a_statement_that_does_not_include_answers() -> None:
    session = opened(budget=dpnb.Budget.gdp(1))
    answer = session.frame["age"].sum().release(mu=0.5)
    session.frame.groupby("g").size().idxmax().release(epsilon=0.05)
    session.above_threshold(50, epsilon=0.2, name="scan").ask(session.frame.count())
    without, included = session.report(), session.report(answers=True)
    value = f"{float(answer):,.0f}".split(",")[-1]
    assert all(one.answer is None for one in without.releases)
    assert [one.answer is None for one in included.releases] == [False, False, True, False]
    assert value in str(included.releases[0].answer)
    comparison = included.releases[-1]
    assert str(comparison.answer) in ("above 50 in this table", "below 50 in this table")
    assert "above" not in without.releases[-1].query.replace("above-threshold", "")
    assert {one.error for one in without.releases} == {None}
    assert included.releases[0].error is not None


def test_a_statement_without_answers_does_not_depend_on_them() -> None:
    """The error of a mean or a median is computed from noisy values."""

    def released(n: int, *, answers: bool) -> list[ReportedRelease]:
        table = pd.DataFrame({"age": [20] * n + [80] * (100 - n)})
        session = dpnb.Session(
            table, name="t", schema={"age": dpnb.Bounded(0, 100)}, budget=dpnb.Budget.gdp(1), ledger=":memory:"
        )
        session.frame[session.frame["age"] < 50]["age"].mean().release(mu=0.5)
        session.frame["age"].median().release(mu=0.5)
        return [replace(one, time="", answer=None) for one in session.report(answers=answers).releases]

    assert released(20, answers=False) == released(90, answers=False)
    assert released(20, answers=True) != released(90, answers=True)  # the control: their errors differ


def test_a_failing_control_an_answer_would_be_found() -> None:
    session = used(opened())
    assert any(one.answer for one in session.report(answers=True).releases)


def test_requests_in_mechanisms_say_what_paid_for_them() -> None:
    report = used(opened(budget=dpnb.Budget.gdp(1))).report()
    by_query = {one.query: one for one in report.releases}
    launch = by_query["launch of the sub-session 'col'"]
    assert by_query["sum of age"].paid_by == launch.row
    assert by_query["sum of age"].inside == "sub-session col"
    assert by_query["sum of age"].share is None
    assert by_query["mean of age in g a"].paid_by is None
    assert {(one.kind, one.name) for one in report.mechanisms} == {
        ("above-threshold", "scan"),
        ("sub-session", "col"),
        ("partition", "by g"),
    }


def test_readings_of_the_two_kinds_are_never_mixed() -> None:
    session = opened(budget=dpnb.Budget.gdp(1))
    session.frame["age"].mean().release(mu=0.1)
    readings = session.report().readings
    assert readings.time_uniform is not None
    assert "at whatever moment" in readings.time_uniform
    assert readings.paused is None
    assert "fixed beforehand" in readings.accumulator
    scan = session.above_threshold(50, epsilon=0.02, name="scan")
    assert scan.state == "open"
    while_open = session.report().readings
    assert while_open.paused is None
    assert while_open.time_uniform != readings.time_uniform


def test_charges_to_a_reserve_are_shares_of_the_reserve() -> None:
    session = opened(budget=KINDS["everything"]["budget"])
    session.frame.groupby("g").size().idxmax().release(epsilon=0.05)
    (one,) = session.report().releases
    assert (one.loss, one.charged, one.share) == ("epsilon 0.05", "epsilon 0.05 of the reserve", "25.0% of the reserve")


def test_discovery_has_a_delta() -> None:
    import pandas as pd

    session = dpnb.Session(
        pd.DataFrame({"town": ["here"] * 500}),
        name="towns",
        budget=dpnb.Budget(epsilon=1, delta=1e-6, discovery_delta=1e-7),
        schema={"town": dpnb.Text(max_length=9)},
        ledger=":memory:",
    )
    session.frame.discover("town", discovery_delta=5e-8).release(mu=0.1)
    (one,) = session.report().releases
    assert one.delta == 5e-8
    assert "delta 5e-8" in one.loss


def test_rows_as_units_are_not_called_persons() -> None:
    session = dpnb.Session.rehearse(name="rows", budget=BOTH, schema={"age": dpnb.Bounded(0, 100)})
    first = session.report().sections[0].paragraphs[0]
    assert "the privacy unit is one row" in first
    assert "weaker for the person" in first


def test_a_statement_about_test_data_says_so_first() -> None:
    for session in (
        dpnb.Session.rehearse(name="mock", budget=BOTH, schema={"age": dpnb.Bounded(0, 100)}),
        opened(not_private_test_seed=3),
    ):
        report = session.report()
        assert report.notice == session.notice
        assert report.sections[1].paragraphs[0].startswith(str(session.notice))
        assert report.methods_paragraph.startswith(str(session.notice))
        assert str(session.notice) in report.registry_entry
        assert 'class="notice"' in report.to_html()
        assert "random bits" not in report.methods_paragraph
    assert opened().report().notice is None


def test_a_statement_says_where_the_table_was(tmp_path: Path) -> None:
    assert "also held the table" in str(used(opened()).report().sections[4])
    divided = Divided(tmp_path / "clinic.dpnb", "pooled")
    limits = str(divided.session.report().sections[4])
    assert "through a service" in limits
    assert "also held the table" not in limits


def test_sub_sessions_and_parts_have_no_statement_of_their_own() -> None:
    session = opened(budget=dpnb.Budget.gdp(1))
    inside = [
        session.delegate(share=0.1, name="col"),
        session.partition("g", max_parts_per_unit=1)["a"],
    ]
    for one in inside:
        with pytest.raises(RequestError, match=r"report: .* call report\(\) of that session"):
            one.report()


def test_several_tables_are_declared_by_name() -> None:
    columns = {"age": dpnb.Bounded(0, 100)}
    session = dpnb.Session.rehearse(
        name="two",
        privacy_unit="person",
        max_rows_per_unit={"visits": 2, "drugs": 5},
        budget=BOTH,
        schema={"visits": columns, "drugs": columns},
    )
    report = session.report()
    assert [(table.name, table.max_rows) for table in report.tables] == [("drugs", 5), ("visits", 2)]
    assert "visits.age" in report.methods_paragraph


def test_hostile_texts_are_texts() -> None:
    session = opened(budget=dpnb.Budget.gdp(1))
    name = "</template><script>alert(1)</script>\u202e\x1b[2J"
    session.above_threshold(50, epsilon=0.02, name=name)
    report = session.report()
    page, shown = report.to_html(), repr(report)
    for text in (page, report.to_json(), shown, str(report._repr_html_())):
        assert "\u202e" not in text
        assert "\x1b" not in text
    assert "<script" not in page
    assert page.count("</template>") == 1
    assert "alert(1)" in report.mechanisms[0].name
    assert "alert" not in report.registry_entry


def test_a_page_that_does_not_escape_texts_would_run_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of the test above."""
    session = opened(budget=dpnb.Budget.gdp(1))
    session.above_threshold(50, epsilon=0.02, name="<script>alert(1)</script>")
    report = session.report()
    assert "<script" not in report.to_html()
    monkeypatch.setattr(report_page, "escape", str)
    assert "<script" in report.to_html()


# --- the copy of the rows -------------------------------------------------------------------------------------------


def test_a_statement_does_not_change_its_ledger(tmp_path: Path) -> None:
    session = used(opened(tmp_path / "clinic.dpnb"))
    before = (session.ledger.count, session.ledger.head, session.headroom)
    session.report()
    assert (session.ledger.count, session.ledger.head, session.headroom) == before


def test_a_copy_of_the_first_rows_cannot_be_charged() -> None:
    session = used(opened())
    copy = RowsCopy(session.ledger, 2)
    assert (copy.count, [one.id for one in copy.charges()]) == (2, [1, 2])
    assert copy.head == RowsCopy(session.ledger, 2).head != session.ledger.head
    with pytest.raises(LedgerError, match="this is a copy; nothing was charged"):
        copy.reserve(
            request_key="k", table_version="1", query_key="q", loss=PureGDP.of(Fraction(1), Fraction(0), Fraction(0))
        )
    with pytest.raises(LedgerError, match="must have 99 rows"):
        RowsCopy(session.ledger, 99)


def test_the_paragraph_has_the_bounds_of_all_columns_or_says_where_they_are() -> None:
    def paragraph(count: int) -> str:
        names = [f"x{index:02}" for index in range(count)]
        schema = {name: dpnb.Bounded(0, 10 + index) for index, name in enumerate(names)}
        table = pd.DataFrame({name: [1.0] for name in names})
        session = dpnb.Session(
            table, name="wide", budget=dpnb.Budget.gdp(1), schema=schema, ledger=MEMORY, public_size=1234
        )
        return session.report().methods_paragraph

    assert all(f"x{index:02} 0 to {10 + index}" in paragraph(17) for index in range(17))
    assert "more column" not in paragraph(20)
    assert "and those of 1 more column, as listed in the disclosure statement." in paragraph(21)
    assert "The curator declared the number of units as 1,234." in paragraph(1)
