"""``python -m dpnb report``: the statement of a ledger, and of the part of one analyst."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import jsonschema
import pytest
from msgspec.structs import replace

import dpnb
from dpnb.__main__ import main
from dpnb._core.accountant.granting import grant, revoke, share_of, whole_of
from dpnb.accounting.exact import display_up, exact
from dpnb.errors import InvalidValueError, LedgerError
from dpnb.ledger import RequestOrigin, node_of, requested_by
from dpnb.ledger.replica import ReplicaLedger
from dpnb.ledger.shared_rows import SharedRows
from dpnb.results.disclosure.report import SCHEMA_FILE, Report, report_schema
from dpnb.service.analysts import AnalystSession
from dpnb.session.base import BaseSession
from dpnb.session.disclosure.building import report_of, report_of_ledger
from dpnb.session.disclosure.figures import outcome_with_unit
from dpnb.session.disclosure.requests import StatementScope
from ledger.rows import tamper
from session.statements import Divided, opened, used


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    session = used(opened(tmp_path / "clinic.dpnb"))
    session.ledger.close()
    return session.ledger.path


def received(divided: Divided, name: str) -> Report:
    """The statement that a session of an analyst gives, from what the service sends it."""
    part, is_reserved = divided.parts[name], divided.mode == "reserved"
    whole = divided.session.ledger
    rows = SharedRows(whole, node_of(part.id)) if is_reserved else SharedRows(whole, shows_actors=True)
    table = AnalystSession(name, divided.analysts[name], rows, part).description
    copy = ReplicaLedger("https://example.org/clinic", table.metadata, table.parameters)
    copy.append(rows.after(0, 1000))
    return report_of_ledger(copy, StatementScope(is_copy=True, analyst=name if is_reserved else None))


# --- the schema -----------------------------------------------------------------------------------------------------


def test_the_schema_in_the_package_is_the_one_of_the_types() -> None:
    assert SCHEMA_FILE.read_text(encoding="utf-8") == report_schema()


def test_the_schema_refuses_what_is_no_statement(ledger: str) -> None:
    schema = jsonschema.Draft202012Validator(json.loads(report_schema()))
    content = json.loads(report_of(ledger).to_json())
    schema.check_schema(schema.schema)
    schema.validate(content)
    for name in content:
        with pytest.raises(jsonschema.ValidationError):
            schema.validate({key: value for key, value in content.items() if key != name})
    for change in ({"more": 1}, {"format": 3}, {"releases": 3}, {"source": {**content["source"], "rows": "many"}}):
        with pytest.raises(jsonschema.ValidationError):
            schema.validate({**content, **change})
        with pytest.raises(InvalidValueError, match="must be a disclosure statement"):
            Report.from_json(json.dumps({**content, **change}))


# --- divided budgets ------------------------------------------------------------------------------------------------


def test_a_reserved_budget_has_a_statement_of_each_analyst(tmp_path: Path) -> None:
    divided = Divided(tmp_path / "clinic.dpnb", "reserved")
    whole = report_of(divided.path)
    assert (whole.division.mode, [part.name for part in whole.division.parts]) == ("reserved", ["ana", "bob"])
    assert {one.analyst for one in whole.releases} == {"ana", "bob"}
    assert any("nothing but that analyst's own requests" in one for one in whole.division.assumptions)
    assert len(whole.acts) == 5
    ana = report_of(divided.path, "ana")
    assert (ana.subject.analyst, ana.division.mode, ana.source.rows_of) == ("ana", "reserved", "copy")
    assert ana.releases[0].row == 2  # the cap was moved in row 1
    assert "bob" not in ana.to_json().lower()
    assert "bob" in whole.to_json()  # the control
    assert "carol" not in ana.to_json()
    assert ana.guarantee.mu is not None
    assert whole.guarantee.mu is not None
    assert ana.guarantee.mu < whole.guarantee.mu
    assert "at the analyst's ceiling" in str(ana.sections[3])


def test_what_one_analyst_states_does_not_depend_on_the_others(tmp_path: Path) -> None:
    divided = Divided(tmp_path / "clinic.dpnb", "reserved")
    before = report_of(divided.path, "ana")
    divided.asks("bob", 0.02)
    after = report_of(divided.path, "ana")
    assert replace(after, written=before.written) == before
    whole = report_of(divided.path)
    divided.asks("bob", 0.03)
    assert replace(report_of(divided.path), written=whole.written) != whole  # the control
    divided.asks("ana", 0.02)
    assert replace(report_of(divided.path, "ana"), written=before.written) != before


@pytest.mark.parametrize(
    "budget",
    [
        dpnb.Budget(epsilon=1, delta=1e-8),
        dpnb.Budget(epsilon=1, delta=1e-5, discovery_delta=1e-6),
        dpnb.Budget(epsilon=1, delta=1e-5, pure_epsilon=0.1),
        dpnb.Budget.gdp(0.3),
    ],
    ids=str,
)
def test_the_figures_of_parts_are_comparable_with_those_of_the_whole(budget: dpnb.Budget, tmp_path: Path) -> None:
    """One reading of what is enforced, at the declared delta: a larger part has larger figures, all of it the same."""
    path, figures = tmp_path / "clinic.dpnb", []
    for share in (Fraction(1, 4), Fraction(1, 2), Fraction(1)):
        session = opened(path.with_name(f"{share.numerator} of {share.denominator}.dpnb"), budget=budget)
        account = session._core.account
        grant(account, "analyst", "ana", mode="reserved", amount=share_of(whole_of(account), share), version="1")
        whole, part = (report_of_ledger(session.ledger).guarantee, report_of(session.ledger.path, "ana").guarantee)
        session.ledger.close()
        assert part.implied is not None
        declared = whole if whole.implied is None else whole.implied
        assert part.implied.delta == declared.delta
        figures.append((display_up(part.implied.epsilon), *(outcome_with_unit(part, one) for one in (0.01, 0.1, 0.3))))
    assert figures == sorted(figures)
    assert len(set(figures)) == 3
    assert figures[-1] == (
        display_up(declared.epsilon or 0),
        *(outcome_with_unit(whole, one) for one in (0.01, 0.1, 0.3)),
    )


@pytest.mark.parametrize("mode", ["reserved", "pooled"])
def test_the_session_of_an_analyst_gives_the_same_statement(mode: str, tmp_path: Path) -> None:
    divided = Divided(tmp_path / "clinic.dpnb", mode)  # type: ignore[arg-type]
    given = received(divided, "ana")
    assert given.source.rows_of == "copy"
    if mode == "reserved":
        assert replace(report_of(divided.path, "ana"), written=given.written) == given
    else:
        whole = report_of(divided.path)
        assert given.releases == whole.releases
        assert given.subject == whole.subject


def test_a_pooled_budget_claims_only_the_guarantee_of_all_together(tmp_path: Path) -> None:
    divided = Divided(tmp_path / "clinic.dpnb", "pooled")
    report = report_of(divided.path)
    assert report.division.mode == "pooled"
    assert any("no smaller one is given for a single analyst" in one for one in report.division.assumptions)
    with pytest.raises(InvalidValueError, match=r"analyst: must be an analyst for whom a part .* is reserved"):
        report_of(divided.path, "ana")


def test_parts_say_what_was_charged_to_them(tmp_path: Path) -> None:
    for mode in ("reserved", "pooled"):
        divided = Divided(tmp_path / f"{mode}.dpnb", mode)  # type: ignore[arg-type]
        parts = {part.name: part for part in report_of(divided.path).division.parts}
        assert parts["bob"].spent == "mu 0.07"
        assert (parts["ana"].ceiling is None) is (mode == "pooled")
        assert parts["ana"].cap is not None
        own = (
            {part.name: part for part in report_of(divided.path, "ana").division.parts} if mode == "reserved" else parts
        )
        assert (own["ana"].spent, own["ana"].cap) == (parts["ana"].spent, parts["ana"].cap)


def test_parts_under_individual_accounting_say_that_no_unit_pays_more_than_its_budget(tmp_path: Path) -> None:
    session = opened(tmp_path / "clinic.dpnb", budget=dpnb.Budget.gdp(1), accounting="individual")
    core = session._core
    part = grant(core.account, "analyst", "ana", "reserved", share_of(whole_of(core.account), exact(0.25)), version="1")
    with requested_by(RequestOrigin("ana")):
        for mu in (0.3, 0.4, 0.45):
            BaseSession(core.for_analyst(part)).frame["age"].sum().release(mu=mu)
            BaseSession(core.for_analyst(part)).frame["age"].mean().release(mu=mu)
    own = report_of(session.ledger.path, "ana")
    (shown,) = own.division.parts
    assert (shown.ceiling, "no unit is charged more than its budget" in shown.spent) == ("mu 0.5", True)
    assert own.division.parts[0].spent == report_of(session.ledger.path).division.parts[0].spent
    assert "certainly took part" in str(own.readings.participation)
    assert str(own.readings.participation) in str(own.sections)


def test_a_revoked_part_still_has_a_statement(tmp_path: Path) -> None:
    divided = Divided(tmp_path / "clinic.dpnb", "reserved")
    revoke(divided.core.account, divided.parts["ana"], version="1")
    (own,) = report_of(divided.path, "ana").division.parts
    assert own.revoked
    assert [part.revoked for part in report_of(divided.path).division.parts] == [True, False]


# --- the command ----------------------------------------------------------------------------------------------------


def test_the_command_writes_what_the_name_of_the_file_says(
    ledger: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, data = tmp_path / "statement.html", tmp_path / "statement.json"
    for path in (page, data):
        assert main(["report", ledger, "--output", str(path)]) == 0
        assert "charged requests; (1, 1e-06)-DP" in capsys.readouterr().out
    report = Report.from_json(data.read_text(encoding="utf-8"))
    assert replace(report, written=report_of(ledger).written) == report_of(ledger)
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert main(["report", ledger]) == 0
    assert capsys.readouterr().out.startswith("<!DOCTYPE html>")
    assert main(["report", ledger, "--format", "json", "--answers"]) == 0
    assert json.loads(capsys.readouterr().out)["subject"]["answers"] is True


def test_what_the_command_cannot_do_is_refused(ledger: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused = [
        [str(tmp_path / "none.dpnb")],
        [ledger, "--output", str(tmp_path / "statement.pdf")],
        [ledger, "--output", str(tmp_path / "missing" / "statement.html")],
        [ledger, "--analyst", "ana"],
    ]
    for arguments in refused:
        assert main(["report", *arguments]) == 2
        assert capsys.readouterr().err.startswith("dpnb: ")
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".dpnb-journal") == ["clinic.dpnb"]


def test_an_altered_ledger_has_no_statement(ledger: str) -> None:
    tamper(Path(ledger), "UPDATE events SET loss = '{}' WHERE id = 1")
    with pytest.raises(LedgerError, match="must be as dpnb left it"):
        report_of(ledger)


def test_a_statement_reads_the_ledger_and_writes_nothing(ledger: str) -> None:
    before = {path.name: path.read_bytes() for path in Path(ledger).parent.iterdir()}
    report_of(ledger)
    assert {path.name: path.read_bytes() for path in Path(ledger).parent.iterdir()} == before


def test_the_name_is_that_of_the_declaration_and_not_of_the_file(ledger: str, tmp_path: Path) -> None:
    moved = tmp_path / "other name.dpnb"
    moved.write_bytes(Path(ledger).read_bytes())
    assert report_of(str(moved)).subject.session == "clinic"
    assert str(tmp_path) not in report_of(ledger).to_json()
