"""What the curator states in own words: it is kept, replaced, shown in the statement, and names the unit."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpnb
from dpnb.curator.verification import verify
from dpnb.errors import InvalidValueError, LedgerError
from dpnb.session.disclosure.building import report_of
from ledger.rows import tamper
from remote.people import connected, people
from session.statements import Divided, opened

TEXT = {"title": "Stays", "purpose": "Research\n  on care", "contact": "privacy@example.org"}


def test_a_later_session_keeps_what_was_stated_and_another_text_replaces_it(tmp_path: Path) -> None:
    path = tmp_path / "clinic.dpnb"
    first = opened(path, statement=TEXT, unit_label="patient").report()
    assert first.stated is not None
    assert first.stated.text == dpnb.StatementText(title="Stays", purpose="Research on care", contact=TEXT["contact"])
    assert first.sections[0].paragraphs[:2] == ("Title: Stays", "Purpose: Research on care")
    assert opened(path).report().stated == first.stated
    assert opened(path, statement=TEXT, unit_label="patient").ledger.count == 1  # no row for the same words
    now = opened(path, statement={"title": "Stays in hospitals"}).report()
    assert now.stated is not None
    assert (now.stated.text.facts, now.stated.unit_label) == ([("Title", "Stays in hospitals")], "patient")
    assert len(now.stated.times) == 2
    assert "was replaced 1 time." in now.sections[0].paragraphs[-1]


def test_a_statement_without_own_words_has_no_such_section() -> None:
    report = opened().report()
    assert report.stated is None
    assert report.sections[0].title == "Who is protected"


def test_statements_from_before_and_after_a_change_are_verified(tmp_path: Path) -> None:
    divided, path = Divided(tmp_path / "clinic.dpnb", "reserved"), tmp_path / "clinic.dpnb"
    budget = divided.session.budget
    for number, text in enumerate((None, {"title": "One"}, {"title": "Two"})):
        opened(path, budget=budget, statement=text, unit_label=None if text is None else "patient").ledger.close()
        report_of(str(path)).save(tmp_path / f"{number}.html")
        report_of(str(path), "ana").save(tmp_path / f"{number}-ana.json")
    for number in range(3):
        for name in (f"{number}.html", f"{number}-ana.json"):
            result = verify(str(tmp_path / name), str(path))
            assert result.is_fine, (name, result.differences)
    altered = (tmp_path / "1-ana.json").read_text().replace("One", "Won")
    (tmp_path / "altered.json").write_text(altered)
    assert not verify(str(tmp_path / "altered.json"), str(path)).is_fine


def test_the_words_cannot_be_put_into_a_ledger_without_breaking_its_chain(tmp_path: Path) -> None:
    path = tmp_path / "clinic.dpnb"
    opened(path, statement=TEXT).ledger.close()
    report_of(str(path))
    tamper(path, 'INSERT INTO metadata VALUES (\'stated\', \'{"text": {}, "times": [], "unit_label": "row"}\')')
    with pytest.raises(LedgerError, match="must be as dpnb left it"):
        report_of(str(path))


def test_the_label_names_the_unit_in_words_and_is_no_part_of_what_is_declared(tmp_path: Path) -> None:
    path = tmp_path / "clinic.dpnb"
    session = opened(path)
    session.frame["age"].mean().release(mu=0.1)
    assert "person" in session.guarantee
    session = opened(path, unit_label="patient")  # after the first charge
    report, explained = session.report(), str(session.frame["age"].mean().explain())
    words = [session.guarantee, str(session.schema), report.unit.words, report.guarantee.words, report.tables[0].unit]
    assert all("one patient (at most 2 rows)" in text for text in words)
    assert "one patient adds" in explained
    assert "person" not in explained
    assert "the column person" in report.sections[0].paragraphs[0]
    assert "patient" not in session.ledger.metadata["privacy_unit"]
    each = dpnb.Session.rehearse(
        name="rows", budget=None, schema={"age": dpnb.Bounded(0, 9)}, unit_label="stay in a ward"
    )
    assert "one stay in a ward (one row)" in str(each.explain())


def test_an_analyst_of_a_service_has_the_words_and_the_label(tmp_path: Path) -> None:
    session = people(ledger=tmp_path / "people.dpnb", statement=TEXT, unit_label="patient")
    with connected(session, tmp_path) as (remote, _):
        remote.frame["age"].mean().release(mu=0.05)
        report = remote.report()
        report.save(tmp_path / "statement.html")
        assert "one patient" in remote.guarantee
    assert report.stated == session.report().stated
    assert verify(str(tmp_path / "statement.html"), session.ledger.path).is_fine


TOML = """\
name = "clinic"
unit_label = "patient"
ledger = ":memory:"

[budget]
epsilon = 1.0
delta = 1e-6

[schema]
age = { type = "bounded", low = 0, high = 90 }

[statement]
title = "Stays"
legal_basis = "Article 6"
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("legal_basis", "legal_bases", "line 14: 'legal_bases' is not a key in statement; did you mean 'legal_basis'"),
        ('"Article 6"', "6", "line 14: statement: legal_basis: must be 1 to 2,000 printable characters; got 6"),
        ('"Article 6"', '""', "line 14: statement: legal_basis: must be 1 to 2,000 printable"),
        ('"patient"', '"a\\tb"', "line 2: unit_label: must be a word for one privacy unit"),
    ],
)
def test_a_wrong_text_is_refused_with_file_and_line(old: str, new: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "clinic.toml"
    path.write_text(TOML)
    session = dpnb.Session.from_toml(path, rehearse=True)
    assert session.report().sections[0].paragraphs[1] == "Legal basis: Article 6"
    path.write_text(TOML.replace(old, new))
    with pytest.raises((InvalidValueError, dpnb.errors.SchemaError)) as refused:
        dpnb.Session.from_toml(path, rehearse=True)
    assert expected in str(refused.value)
    assert str(refused.value).startswith(str(path))


@pytest.mark.parametrize("statement", ["Stays", {"titel": "Stays"}, {"title": "\x07"}, {"title": "a" * 2001}, {1: "a"}])
def test_a_wrong_argument_is_refused(statement: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"^statement: "):
        opened(statement=statement)


def test_a_long_list_of_categories_is_cited_so_that_all_who_have_it_can_check(tmp_path: Path) -> None:
    codes, few = [f"Ä{number:05}" for number in range(15_000)], ["a", "b", 3]
    session = dpnb.Session(
        pd.DataFrame({"code": codes[:3], "few": ["a", "b", "a"]}),
        name="codes",
        budget=dpnb.Budget(epsilon=1, delta=1e-6),
        schema={"code": dpnb.Categories(codes), "few": dpnb.Categories(few)},
        ledger=tmp_path / "codes.dpnb",
    )
    report = session.report()
    cited, listed = report.tables[0].columns
    digest = hashlib.sha256(json.dumps(codes, separators=(",", ":"), ensure_ascii=False).encode()).hexdigest()
    assert cited.values == f"15,000 categories, the first of them 'Ä00000', 'Ä00001', 'Ä00002'; SHA-256 {digest}"
    assert (cited.declared.count, cited.declared.digest) == (15_000, digest)  # type: ignore[union-attr]
    assert listed.declared == dpnb.Categories(few)
    assert codes[3] not in report.to_html()
    report.save(tmp_path / "statement.html")
    assert verify(str(tmp_path / "statement.html"), session.ledger.path).is_fine
