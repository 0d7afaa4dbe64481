"""``python -m dpnb verify``: it accepts a statement of its ledger, and detects every alteration of either."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import pytest

import dpnb
from dpnb.__main__ import main
from dpnb._request import Release
from dpnb._target import target_from
from dpnb.accounting.losses import GDP
from dpnb.curator import verification as verify_module
from dpnb.curator.verification import verify
from dpnb.errors import InvalidValueError
from dpnb.ledger import Ledger
from dpnb.results.disclosure.report import Report
from dpnb.session.disclosure.building import report_of, report_of_ledger
from dpnb.session.disclosure.requests import StatementScope
from ledger.rows import tamper
from session.statements import EVERYTHING, Divided, opened, used

Content = dict[str, Any]


@pytest.fixture
def session(tmp_path: Path) -> dpnb.Session:
    return used(opened(tmp_path / "clinic.dpnb", budget=EVERYTHING))  # type: ignore[return-value]


@pytest.fixture
def saved(session: dpnb.Session, tmp_path: Path) -> Path:
    path = tmp_path / "statement.json"
    session.report(answers=True).save(path)
    return path


def differing(report: Path, ledger: str) -> set[str]:
    """The names of the fields that differ."""
    return {one.partition(":")[0] for one in verify(str(report), ledger).differences}


# --- what is fine ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["html", "json"])
def test_a_statement_of_its_ledger_is_verified(
    form: str, session: dpnb.Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"statement.{form}"
    session.report().save(path)
    assert main(["verify", str(path), session.ledger.path]) == 0
    assert "The statement is what 9 rows of the ledger say." in capsys.readouterr().out
    session.frame.count().release(mu=0.01)
    assert main(["verify", str(path), session.ledger.path]) == 0
    assert "Note: The ledger has 1 later row" in capsys.readouterr().out


def test_line_ends_of_another_system_are_no_difference(session: dpnb.Session, tmp_path: Path) -> None:
    path = tmp_path / "statement.html"
    path.write_bytes(session.report().to_html().replace("\n", "\r\n").encode())
    assert verify(str(path), session.ledger.path).is_fine


def test_an_answer_that_was_given_later_is_no_difference_and_is_said(session: dpnb.Session, tmp_path: Path) -> None:
    query = session.frame["age"].median()
    with session.ledger.transaction():
        session.ledger.reserve(request_key="later", table_version="1", query_key="q", loss=GDP("1/100"), sigma=1.0,
            request=Release(query.plan, query.view, target_from(mu=0.1)).text, tau=0.5)  # fmt: skip
    path = tmp_path / "statement.json"
    session.report().save(path)
    assert json.loads(path.read_text())["releases"][-1]["status"] == "reserved"
    session.ledger.fail(session.ledger.charges()[-1])
    result = verify(str(path), session.ledger.path)
    assert result.is_fine, result.differences
    assert any("1 request without an answer then" in note for note in result.notes)


@pytest.mark.parametrize("analyst", ["ana", "bob"])
def test_a_statement_of_one_analyst_is_verified(analyst: str, tmp_path: Path) -> None:
    divided = Divided(tmp_path / "clinic.dpnb", "reserved")
    path = tmp_path / "statement.json"
    report_of(divided.path, analyst).save(path)
    divided.asks("ana", 0.01)
    divided.asks("bob", 0.01)
    result = verify(str(path), divided.path)
    assert result.is_fine, result.differences
    assert any("1 later row" in note for note in result.notes)


# --- attacks: an altered statement ------------------------------------------------------------------------------------


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values that are not containers."""
    if isinstance(value, dict):
        return [one for key, inner in value.items() for one in leaves(inner, (*path, key))]
    if isinstance(value, list):
        return [one for key, inner in enumerate(value) for one in leaves(inner, (*path, key))]
    return [path]


def at(content: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        content = content[key]
    return content


def altered(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1 if value < 1e9 else 0
    return "x" if value is None else f"{value} x"


def test_every_altered_value_is_detected(session: dpnb.Session, saved: Path, tmp_path: Path) -> None:
    """Only the first of each kind of field in lists, since each needs a whole verification."""
    content = json.loads(saved.read_text(encoding="utf-8"))
    seen, missed = set(), []
    for path in leaves(content):
        kind = tuple(key for key in path if not isinstance(key, int))
        if kind in seen:
            continue
        seen.add(kind)
        changed = json.loads(json.dumps(content))
        at(changed, path[:-1])[path[-1]] = altered(at(content, path))
        saved.write_text(json.dumps(changed), encoding="utf-8")
        try:
            if verify(str(saved), session.ledger.path).is_fine:
                missed.append(path)
        except InvalidValueError:
            continue  # no statement any more
    # A version changes the paragraph and the entry too, which then differ; only all of them together are consistent.
    assert missed == []
    assert len(seen) > 60


def test_a_comparison_that_ignores_losses_misses_a_lower_one(
    session: dpnb.Session, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the test above."""
    content = json.loads(saved.read_text(encoding="utf-8"))
    content["releases"][0]["mu"] = 0.001
    saved.write_text(json.dumps(content), encoding="utf-8")
    differences = verify_module._differences
    assert not verify(str(saved), session.ledger.path).is_fine
    monkeypatch.setattr(
        verify_module, "_differences", lambda *both: (one for one in differences(*both) if ".mu:" not in one)
    )
    assert verify(str(saved), session.ledger.path).is_fine


def test_a_lower_loss_is_named(session: dpnb.Session, saved: Path) -> None:
    content = json.loads(saved.read_text(encoding="utf-8"))
    content["releases"][0]["mu"] = 0.001
    content["guarantee"]["epsilon"] = 0.5
    saved.write_text(json.dumps(content), encoding="utf-8")
    assert differing(saved, session.ledger.path) == {"releases[0].mu", "guarantee.epsilon"}


def test_no_text_can_be_put_into_what_does_not_follow_from_the_ledger(session: dpnb.Session, saved: Path) -> None:
    content = json.loads(saved.read_text(encoding="utf-8"))
    for name, text in (
        ("time", "2026-01-01T00:00:00Z, certified"),
        ("version", "1.0 (certified)"),
        ("version", "1" + "0" * 99),
        ("program", "another"),
    ):
        changed = {**content, "written": {**content["written"], name: text}}
        saved.write_text(json.dumps(changed), encoding="utf-8")
        with pytest.raises(InvalidValueError, match=f"written.{name}"):
            verify(str(saved), session.ledger.path)


def test_requests_of_a_notebook_cannot_be_called_those_of_a_service(session: dpnb.Session, tmp_path: Path) -> None:
    """Also in the statement that an attacker computes, of the same rows as if a service had shown them."""
    path = tmp_path / "statement.json"
    report_of_ledger(session.ledger, StatementScope(is_copy=True)).save(path)
    assert "through a service" not in path.read_text(encoding="utf-8")
    assert "process that also held the table" in path.read_text(encoding="utf-8")


def test_an_omitted_release_is_detected(session: dpnb.Session, saved: Path) -> None:
    content = json.loads(saved.read_text(encoding="utf-8"))
    del content["releases"][-1]
    saved.write_text(json.dumps(content), encoding="utf-8")
    assert differing(saved, session.ledger.path) == {"releases"}


def test_the_text_of_a_page_cannot_differ_from_its_data(session: dpnb.Session, tmp_path: Path) -> None:
    path = tmp_path / "statement.html"
    page = session.report().to_html()
    visible, _, data = page.partition("<template")
    path.write_text(visible.replace("epsilon of 2", "epsilon of 1") + "<template" + data, encoding="utf-8")
    assert differing(path, session.ledger.path) == {"page"}
    path.write_text(page.replace("</main>", "<p>Certified.</p></main>"), encoding="utf-8")
    assert differing(path, session.ledger.path) == {"page"}
    path.write_text(page.replace(escape('"epsilon": 2.0'), escape('"epsilon": 1.0')), encoding="utf-8")
    assert differing(path, session.ledger.path) == {"page", "guarantee.epsilon"}


def test_statements_that_cannot_be_read(
    session: dpnb.Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, data = session.report().to_html(), session.report().to_json()
    wrong = {
        "empty": b"",
        "no text": b"\xff\xfe",
        "other JSON": b"[1, 2]",
        "a field twice": data.replace('"format": 2,', '"format": 2, "format": 2,').encode(),
        "a page without data": page.replace('id="dpnb-statement"', "").encode(),
        "a page with data twice": page.replace("</body>", '<template id="dpnb-statement"></template></body>').encode(),
        "deep": b"[" * 100_000,
    }
    for name, content in wrong.items():
        path = tmp_path / "statement"
        path.write_bytes(content)
        assert main(["verify", str(path), session.ledger.path]) == 2, name
        assert capsys.readouterr().err.startswith("dpnb: report: "), name
    assert main(["verify", str(tmp_path / "none"), session.ledger.path]) == 2


# --- attacks: another ledger ------------------------------------------------------------------------------------------


def cut(path: str, rows: int) -> None:
    """Remove the last rows, as somebody does who knows the format: the chain of hashes is then intact."""
    with_head = f"UPDATE head SET id = {rows}, hash = (SELECT hash FROM events WHERE id = {rows})"
    tamper(Path(path), with_head)
    tamper(Path(path), f"DELETE FROM events WHERE id > {rows}")


ALTERATIONS: dict[str, tuple[Callable[[str], None], int]] = {
    "a loss": (lambda path: tamper(Path(path), 'UPDATE events SET loss = \'{"mu_squared": "1/100"}\' WHERE id = 2'), 2),
    "a request": (lambda path: tamper(Path(path), "UPDATE events SET request = '{}' WHERE id = 1"), 2),
    "an answer": (lambda path: tamper(Path(path), "UPDATE events SET result = '{}' WHERE id = 1"), 2),
    "a removed row": (lambda path: tamper(Path(path), "DELETE FROM events WHERE id = 3"), 2),
    "the budget": (lambda path: tamper(Path(path), "UPDATE metadata SET value = '{}' WHERE key = 'budget'"), 2),
    "fewer rows": (lambda path: cut(path, 4), 1),
}


@pytest.mark.parametrize("name", ALTERATIONS)
def test_an_altered_ledger_is_detected(name: str, session: dpnb.Session, saved: Path) -> None:
    alter, code = ALTERATIONS[name]
    path = session.ledger.path
    session.ledger.close()
    assert main(["verify", str(saved), path]) == 0
    alter(path)
    assert main(["verify", str(saved), path]) == code


def test_a_ledger_with_fewer_rows_is_named(session: dpnb.Session, saved: Path) -> None:
    path = session.ledger.path
    session.ledger.close()
    cut(path, 4)
    assert differing(saved, path) == {"source.rows"}


def test_a_statement_of_another_ledger_is_detected(saved: Path, tmp_path: Path) -> None:
    again = used(opened(tmp_path / "again.dpnb", budget=EVERYTHING))
    found = differing(saved, again.ledger.path)
    assert "source.head" in found


def test_a_ledger_that_was_written_again_with_the_same_requests_is_detected(saved: Path, tmp_path: Path) -> None:
    other = used(opened(tmp_path / "other.dpnb", budget=dpnb.Budget(epsilon=1, delta=1e-6, pure_epsilon=0.2)))
    found = differing(saved, other.ledger.path)
    assert {"source.head", "guarantee.epsilon", "guarantee.words"} <= found


def test_a_statement_of_another_node_is_detected(tmp_path: Path) -> None:
    divided = Divided(tmp_path / "clinic.dpnb", "reserved")
    path = tmp_path / "statement.json"
    own = report_of(divided.path, "ana")
    renamed = json.loads(own.to_json().replace('"ana"', '"bob"'))
    path.write_text(json.dumps(renamed), encoding="utf-8")
    assert verify(str(path), divided.path).differences
    for name in ("carol", None):
        content = json.loads(own.to_json())
        content["subject"]["analyst"] = name
        path.write_text(json.dumps(content), encoding="utf-8")
        assert verify(str(path), divided.path).differences, name
    content = json.loads(own.to_json())
    content["source"]["rows_of"] = "ledger"
    path.write_text(json.dumps(content), encoding="utf-8")
    assert differing(path, divided.path) == {"source.rows_of"}


def test_the_whole_statement_of_a_pooled_analyst_is_verified_too(tmp_path: Path) -> None:
    from curator.test_report import received

    divided = Divided(tmp_path / "clinic.dpnb", "pooled")
    path = tmp_path / "statement.json"
    received(divided, "ana").save(path)
    assert verify(str(path), divided.path).is_fine


def test_another_version_of_the_program_is_said(session: dpnb.Session, saved: Path) -> None:
    from msgspec.structs import replace

    report = Report.from_json(saved.read_text(encoding="utf-8"))
    replace(report, written=replace(report.written, version="9.9.9")).save(saved)
    result = verify(str(saved), session.ledger.path)
    assert any("dpnb 9.9.9 wrote it" in note for note in result.notes)
    assert {one.partition(":")[0] for one in result.differences} == {"methods_paragraph", "registry_entry"}


def test_a_statement_about_nothing_is_verified(tmp_path: Path) -> None:
    session = opened(tmp_path / "new.dpnb")
    path = tmp_path / "statement.html"
    session.report().save(path)
    assert verify(str(path), session.ledger.path).is_fine
    assert Ledger.read_only_copy(session.ledger.path).count == 0
