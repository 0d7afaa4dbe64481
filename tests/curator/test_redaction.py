"""``python -m dpnb redact``: an outsider checks the statement, and finds no answer, name or digest of files."""

from __future__ import annotations

import hashlib
import itertools
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import dpnb
from dpnb.__main__ import main
from dpnb._core.accountant.granting import grant, move_cap, whole_of, write_act
from dpnb._core.accountant.people import approve, decline, hand_over
from dpnb._core.requesting import request_budget
from dpnb._core.source_files import TableFileCheck
from dpnb._request import Release
from dpnb._target import target_from
from dpnb.accounting.losses import PureGDP
from dpnb.curator import redaction
from dpnb.curator.redaction import RedactedCopy, redact
from dpnb.curator.verification import verify
from dpnb.errors import InvalidValueError, LedgerError
from dpnb.ledger import Ledger, RequestOrigin, node_of, requested_by
from dpnb.ledger import charge as row
from dpnb.ledger.chain import chain_start
from dpnb.ledger.shared_rows import SharedRows
from dpnb.session.disclosure.building import report_of
from dpnb.session.disclosure.together import sum_of
from ledger.rows import tamper
from ledger.test_format import asked
from remote.people import connected, people
from session.statements import EVERYTHING, KINDS, Divided, opened, used

NAMES = ("zoe.quill", "victor.yang", "carol")
WHY = "Because of Mrs Q."


class Office(Divided):
    """A divided ledger with names, reasons, digests of files, requests for budget and a text of the statement."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "reserved", NAMES[:2])
        account, ana = self.core.account, self.parts[NAMES[0]]
        TableFileCheck(account.ledger, "1", lambda: "a" * 64)
        analyst = self.analysts[NAMES[0]]
        for number, query in enumerate((analyst.frame["age"].median(), analyst.frame["age"].sum())):
            with requested_by(RequestOrigin(NAMES[0], f"id of request {number}", "b" * 64)):
                release = Release(query.plan, query.view, target_from(mu="0.05"))
                request_budget(analyst._core, [release], WHY)
        first, second = account.tree.budget_requests().values()
        with requested_by(RequestOrigin(NAMES[2])):
            approve(account, first.id, first.digest, None, None, WHY, version="1")
            decline(account, second.id, second.digest, WHY, version="1")
            move_cap(account, ana, PureGDP.of(Fraction(1, 100), Fraction(0), Fraction(0)), version="1")
        self.session.ledger.close()


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path / "whole.dpnb")


def given(whole: str, folder: Path, name: str = "given") -> tuple[str, str]:
    """A redacted ledger and its statement, as a curator hands them over."""
    ledger, statement = str(folder / f"{name}.dpnb"), str(folder / f"{name}.html")
    assert main(["redact", whole, ledger]) == 0
    assert main(["report", ledger, "--output", statement]) == 0
    return statement, ledger


def rows_of(path: str) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(path)) as file:
        file.row_factory = sqlite3.Row
        return [dict(one) for one in file.execute("SELECT * FROM events ORDER BY id")]


def start_of(path: str) -> str:
    """The hash before the first row."""
    with closing(sqlite3.connect(path)) as file:
        metadata, parameters = (dict(file.execute(f"SELECT * FROM {name}")) for name in ("metadata", "parameters"))
    return chain_start(path, metadata, parameters).hash


# --- what an outsider can do with it ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["everything", "individual", "rogers", "none"])
def test_the_statement_of_a_redacted_ledger_is_verified_with_it_and_with_the_whole_one(
    kind: str, tmp_path: Path
) -> None:
    session = used(opened(tmp_path / "whole.dpnb", **KINDS[kind]))
    statement, ledger = given(session.ledger.path, tmp_path)
    for path in (ledger, session.ledger.path):
        result = verify(statement, path)
        assert result.is_fine, result.differences
    redacted, whole = report_of(ledger), report_of(session.ledger.path)
    assert redacted.source.rows_of == "redacted"
    assert (redacted.filter, redacted.readings, redacted.guarantee) == (whole.filter, whole.readings, whole.guarantee)
    assert [(one.loss, one.share) for one in redacted.releases] == [(one.loss, one.share) for one in whole.releases]


def test_parts_requests_and_decisions_are_verified_and_audited_without_names(office: Office, tmp_path: Path) -> None:
    statement, ledger = given(office.path, tmp_path)
    assert verify(statement, ledger).is_fine
    assert verify(statement, office.path).is_fine
    assert main(["audit", ledger]) == 0
    redacted, whole = report_of(ledger), report_of(office.path)
    assert [one.spent for one in redacted.division.parts] == [one.spent for one in whole.division.parts]
    names = {one.name: other.name for one, other in zip(whole.division.parts, redacted.division.parts, strict=True)}
    assert all(name.startswith("person-") for name in names.values())
    analysts = [(one.analyst, other.analyst) for one, other in zip(whole.releases, redacted.releases, strict=True)]
    assert all(other == names[str(name)] for name, other in analysts)  # the same person has the same word everywhere


def test_a_part_that_was_handed_over_is_verified_and_audited_without_names(tmp_path: Path) -> None:
    session = opened(tmp_path / "whole.dpnb", budget=EVERYTHING)
    account = session._core.account
    grant(account, "analyst", NAMES[0], "reserved", whole_of(account), version="1")
    hand_over(account, NAMES[0], NAMES[2], version="1")
    session.ledger.close()
    statement, ledger = given(session.ledger.path, tmp_path)
    assert verify(statement, ledger).is_fine
    assert main(["audit", ledger]) == 0
    assert not [name for name in NAMES if name.encode() in Path(ledger).read_bytes()]


def test_a_later_redacted_ledger_continues_an_earlier_one(office: Office, tmp_path: Path) -> None:
    statement, ledger = given(office.path, tmp_path, "first")
    session = opened(Path(office.path), budget=EVERYTHING, statement={"title": "Stays"})
    session.ledger.close()
    _, again = given(office.path, tmp_path, "second")
    first, second = rows_of(ledger), rows_of(again)
    assert second[: len(first)] == first
    assert len(second) == len(first) + 1
    assert verify(statement, again).is_fine


# --- attacks: to find what is hidden ----------------------------------------------------------------------------------


def test_nothing_that_is_hidden_is_in_the_file(office: Office, tmp_path: Path) -> None:
    statement, ledger = given(office.path, tmp_path)
    whole = rows_of(office.path)
    assert [(one["kind"], one["loss"], one["request_key"]) for one in rows_of(ledger) if one["kind"] != "grant"] == [
        (one["kind"], one["loss"], one["request_key"]) for one in whole if one["kind"] != "grant"
    ]
    (key,) = (json.loads(one["details"])["key"] for one in whole if one["kind"] == row.REDACTION)
    hidden = {*NAMES, WHY, key, "a" * 64, "b" * 64, "id of request 0"}
    columns = ("result", "words", "salt", "hash", "result_hash", "request_digest")
    hidden |= {str(one[name]) for one in whole for name in columns if one[name] is not None}
    assert len(hidden) > 40
    content, page = Path(ledger).read_bytes(), Path(statement).read_bytes()
    assert [text for text in hidden if text.encode() in content or text.encode() in page] == []


def by_words(ledger: str) -> list[str]:
    """The names of a list that an attacker finds who hashes each of them as anybody can, without a key."""
    found = {one["actor"] for one in rows_of(ledger)} | {one["query_key"] for one in rows_of(ledger)}
    texts: list[Callable[[str], str]] = [
        lambda name: name,
        lambda name: json.dumps([name]),
        lambda name: json.dumps(["grant", "analyst", name]),
    ]
    return [
        name
        for name in NAMES
        if any(
            hashlib.sha256(of(name).encode()).hexdigest()[:digits] in str(word)
            for of in texts
            for digits in (16, 64)
            for word in found
        )
    ]


def by_hashes(ledger: str) -> list[str]:
    """The names that an attacker finds who puts each of them into a row and computes its hash."""
    found, previous = [], start_of(ledger)
    for stored in rows_of(ledger):
        for name in NAMES:
            if stored["actor"] is not None and row.chained_hash(previous, {**stored, "actor": name}) == stored["hash"]:
                found.append(name)
        previous = stored["hash"]
    return found


def by_answers(stored: dict[str, Any], salts: Iterable[str | None]) -> list[bool]:
    """The answers of a comparison that an attacker finds who computes the digest of both, with some salts."""
    found = []
    for above in (True, False):
        result = json.dumps({"threshold": "50", "above": above})
        words = json.dumps([f"count of rows: {'above' if above else 'below'} 50 in this table", *[None] * 5])
        if any(row.sealed(result, words, salt or "")[1] == stored["answer_digest"] for salt in salts):
            found.append(above)
    return found


def test_names_cannot_be_found_by_trying_a_list_of_them(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, ledger = given(office.path, tmp_path)
    assert by_words(ledger) == by_hashes(ledger) == []
    # Controls: digests without a key, and the hashes of the whole ledger beside what is hidden from them.
    unkeyed = lambda self, *texts: hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:16]  # noqa: E731
    with monkeypatch.context() as patch:
        patch.setattr(RedactedCopy, "_digest", unkeyed)
        _, broken = given(office.path, tmp_path, "unkeyed")
    assert by_words(broken)
    with closing(sqlite3.connect(ledger, isolation_level=None)) as file:
        for stored in rows_of(office.path):
            file.execute("UPDATE events SET hash = ? WHERE id = ?", (stored["hash"], stored["id"]))
            names = ("request_id", "request_digest", "cell_id", "details", "request", "request_key", "query_key")
            for name in names:  # an attacker who knows everything but who it was
                file.execute(f"UPDATE events SET {name} = ? WHERE id = ?", (stored[name], stored["id"]))
    assert by_hashes(ledger)


def test_a_yes_or_no_cannot_be_found_by_trying_both(tmp_path: Path) -> None:
    """The salt of an answer has 128 random bits, and is not in the redacted ledger."""
    path = tmp_path / "whole.dpnb"
    session = opened(path)
    session.above_threshold(50, epsilon=0.02, name="scan").ask(session.frame.count())
    _, ledger = given(str(path), tmp_path)
    (known,), (shown,) = ([one for one in rows_of(of) if one["kind"] == row.COMPARISON] for of in (str(path), ledger))
    texts = [value for one in rows_of(ledger) for value in one.values() if isinstance(value, str)]
    assert by_answers(shown, ["", None, *texts]) == []
    assert len(known["salt"]) == 32
    answer = json.loads(known["result"])["above"]
    assert by_answers(shown, [known["salt"]]) == [answer]  # control: somebody with the salt tries both


def test_every_key_is_another_one_and_no_analyst_sees_it(tmp_path: Path) -> None:
    keys = set()
    for number in range(2):
        path = tmp_path / f"{number}.dpnb"
        opened(path).ledger.close()
        redact(str(path), f"{path}-given")
        with closing(Ledger.read_only_copy(path)) as ledger:
            keys |= {one["key"] for one in ledger.details_of(row.REDACTION)}
            assert SharedRows(ledger).count == 0
    assert len(keys) == 2


# --- attacks: to alter it ---------------------------------------------------------------------------------------------


def chained_again(path: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Alter rows and compute the chain again, as everybody can who has the file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        number, previous = 0, start_of(path)
        for stored in rows_of(path):
            change(stored)
            number, previous = stored["id"], row.chained_hash(previous, stored)
            stored |= {"hash": previous}
            stored["result_hash"] = row.result_hash(previous, stored["status"], stored["answer_digest"])
            for name, value in stored.items():
                file.execute(f"UPDATE events SET {name} = ? WHERE id = ?", (value, number))
        file.execute("UPDATE head SET id = ?, hash = ?", (number, previous))


def cheaper(stored: dict[str, Any]) -> None:
    """A release that cost less than its noise says."""
    if stored["id"] == 1:
        stored["loss"] = json.dumps({**json.loads(stored["loss"]), "mu_squared": "1/10000"})


def test_an_altered_cost_does_not_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = used(opened(tmp_path / "whole.dpnb"))
    statement, ledger = given(session.ledger.path, tmp_path)
    with closing(Ledger.read_only_copy(ledger)) as copy:
        head = copy.head
    original = Path(ledger).read_bytes()
    tamper(Path(ledger), 'UPDATE events SET loss = \'{"kind": "gdp", "mu_squared": "1/10000"}\' WHERE id = 1')
    assert main(["verify", statement, ledger]) == 2  # the chain is broken
    Path(ledger).write_bytes(original)
    chained_again(ledger, cheaper)
    result = verify(statement, ledger)
    assert any(one.startswith("source.head") for one in result.differences)  # it is another ledger than the stated one
    with closing(Ledger.read_only_copy(ledger)) as copy:
        assert copy.head != head  # which `verify` prints, to be compared with the one that was published
    report_of(ledger).save(statement)  # an attacker who writes the statement again, too
    result = verify(statement, ledger)
    assert [one for one in result.differences if "Row 1 costs more than it was charged" in one] == [*result.differences]
    assert result.differences
    nothing = SimpleNamespace(result=lambda: SimpleNamespace(problems=()))
    monkeypatch.setattr("dpnb.curator.verification.AuditReplay", lambda ledger: nothing)
    assert verify(statement, ledger).is_fine  # control: the audit alone detects it


def each_alteration(ledger: str) -> Iterator[tuple[int, str]]:
    for stored in rows_of(ledger):
        for name in ("loss", "sigma", "actor", "details", "request", "status", "answer_digest", "time"):
            if stored[name] is not None:
                yield stored["id"], name


def test_every_altered_column_breaks_the_chain_or_differs(office: Office, tmp_path: Path) -> None:
    statement, ledger = given(office.path, tmp_path)
    original = Path(ledger).read_bytes()
    passed = []
    for number, name in itertools.islice(each_alteration(ledger), 0, None, 3):
        Path(ledger).write_bytes(original)
        tamper(Path(ledger), f"UPDATE events SET {name} = {name} || ' ' WHERE id = ?", number)
        passed += [(number, name)] if main(["verify", statement, ledger]) == 0 else []
    assert passed == []


# --- what is refused --------------------------------------------------------------------------------------------------


def test_a_redacted_ledger_is_for_reading_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "whole.dpnb")
    opened(Path(path)).ledger.close()
    statement, ledger = given(path, tmp_path)
    with pytest.raises(LedgerError, match="it is a redacted copy, on which nothing can be charged"):
        opened(Path(ledger))
    assert main(["redact", ledger, str(tmp_path / "again.dpnb")]) == 2
    assert main(["redact", path, ledger]) == 2  # the file exists
    assert main(["redact", path, str(tmp_path / "no" / "folder.dpnb")]) == 2
    assert "must be a file that can be written" in capsys.readouterr().err
    report_of(path).save(tmp_path / "whole.json")
    assert main(["verify", str(tmp_path / "whole.json"), ledger]) == 1
    opened(tmp_path / "other.dpnb").ledger.close()
    assert main(["verify", statement, str(tmp_path / "other.dpnb")]) == 1
    assert "was never redacted" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "value"), [("to", "zoe.quill"), ("note", "")])
def test_what_is_not_known_in_a_row_is_refused_rather_than_shown(name: str, value: str, tmp_path: Path) -> None:
    divided = Divided(tmp_path / "whole.dpnb", "reserved")
    account, node = divided.core.account, node_of(divided.parts["ana"].id)
    with account.ledger.transaction():
        write_act(account, node, "1", {"act": "cap", "cap": None, name: value})
    assert main(["redact", divided.path, str(tmp_path / "given.dpnb")]) == 2
    assert not (tmp_path / "given.dpnb").exists()


def test_a_kind_of_row_that_is_not_known_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = used(opened(tmp_path / "whole.dpnb"))
    monkeypatch.setattr(redaction, "AS_THEY_ARE", ())
    with closing(Ledger.read_only_copy(session.ledger.path)) as ledger, pytest.raises(LedgerError):
        RedactedCopy(ledger, b"key")
    assert dpnb.__version__


def test_a_redacted_ledger_is_not_added_to_the_whole_one(office: Office, tmp_path: Path) -> None:
    """Its first row has another hash, since that is about a person."""
    _, redacted_ledger = given(office.path, tmp_path)
    other = Office(tmp_path / "other.dpnb").path
    with pytest.raises(InvalidValueError, match=r"must be another ledger than"):
        sum_of([office.path, redacted_ledger], same_unit=True)
    assert len(sum_of([other, redacted_ledger], same_unit=True).ledgers) == 2


# --- every kind of row, and a ledger that is in use -------------------------------------------------------------------


def test_every_kind_of_request_and_mechanism_can_be_redacted(tmp_path: Path) -> None:
    asked(tmp_path / "whole.dpnb")
    statement, ledger = given(str(tmp_path / "whole.dpnb"), tmp_path)
    assert verify(statement, ledger).is_fine
    redacted, whole = report_of(ledger, answers=True), report_of(str(tmp_path / "whole.dpnb"), answers=True)
    assert [one.query for one in redacted.releases] == [one.query for one in whole.releases]
    assert {one.answer for one in redacted.releases} == {None, "the answer is not in this copy"}
    assert {one.error for one in redacted.releases} == {None}


def test_a_ledger_is_redacted_while_a_service_uses_it(tmp_path: Path) -> None:
    session = people(ledger=tmp_path / "people.dpnb")
    with connected(session, tmp_path) as (remote, _):
        remote.frame["age"].mean().release(mu=0.05)
        statement, ledger = given(session.ledger.path, tmp_path)
        remote.frame["age"].sum().release(mu=0.05)
        assert len(remote.log) == 2
    assert verify(statement, ledger).is_fine
    assert verify(statement, session.ledger.path).is_fine
    assert [one["kind"] for one in rows_of(session.ledger.path)] == ["release", "redaction", "release"]
