"""The words of the log are stored with the answers, and are those that follow from plan and released values."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb._compile.work import stored_words_bytes
from dpnb._core.history.words import AnswerReader
from dpnb._core.pricing import query_state
from dpnb._request import BATCH_TABLE, Request, request_from
from dpnb.curator.audit import audit
from dpnb.ledger import Charge
from dpnb.ledger.charge import COLUMNS, Words, result_hash, sealed, words_of

N = 600
TABLE = pd.DataFrame(
    {
        "who": np.arange(N) // 2,
        "x": np.arange(N) % 50 / 10,
        "g": np.array(["a", "b", "c"])[np.arange(N) % 3],
        "t": np.array(["où", "là"])[np.arange(N) % 2],
        "d": pd.to_datetime("2024-01-01") + pd.to_timedelta(np.arange(N) % 300, unit="D"),
        "n": np.arange(N) % 7,
    }
)
SCHEMA = {
    "x": dpnb.Bounded(0, 5),
    "g": dpnb.Categories(["a", "b", "c"]),
    "t": dpnb.Text(),
    "d": dpnb.Dates("2024-01-01", "2025-01-01"),
    "n": dpnb.Bounded(-1, 10, integer=True),
}


def opened(path: Path) -> dpnb.Session:
    return dpnb.Session(
        TABLE,
        name="many",
        privacy_unit="who",
        max_rows_per_unit=2,
        public_size=300,
        budget=dpnb.Budget.gdp(30, discovery_delta=1e-6),
        schema=SCHEMA,
        ledger=path,
    )


def ask_everything(session: dpnb.Session) -> None:
    frame = session.frame
    x, by = frame["x"], frame.groupby("g")
    few, odd = frame[frame["x"] > 4.98], frame[(frame["n"] % 2 == 1) & (frame["t"] == 'a ",where":{"')]
    for query in (
        *(
            frame.count(),
            few.count(),
            odd.count(),
            frame.count_units(),
            few.count_units(),
            frame["n"].sum(),
            few["x"].mean(),
        ),
        *(
            x.mean(),
            (-x).sum(),
            x.var(),
            x.median(),
            x.quantile([0.1, 0.5, 0.9]),
            few["x"].median(),
            frame["d"].median(),
        ),
        *(by["x"].mean(), by["x"].median(), by["x"].quantile([0.25, 0.75]), by.size(), by["x"].std()),
        *(frame[["x", "n"]].corr(), few[["x", "n"]].cov(), frame["x"].corr(frame["n"])),
        *(frame["g"].value_counts(normalize=True), frame.describe(), frame.groupby(["g", frame["n"] > 3])["n"].sum()),
    ):
        for mu in (0.01, 0.4):
            query.release(mu=mu)
    for mu in (0.1, 0.2, 0.3):
        frame[frame["n"] > 1]["x"].mean().release(mu=mu)
        frame[frame["n"] > 2]["x"].mean().release(mu=mu, confidence=0.9)
        by["n"].mean().release(mu=mu, simultaneous=True)
    frame[frame["n"] > 3].count().release(mu=0.2, final=True)
    by["n"].sum().release(mu=0.1)
    by["n"].sum().release(mu=0.2, groups=["a"])
    session.plan([by.size(), frame.groupby("n", keys=[1, 2]).size()]).release(mu=0.3)
    session.delegate(name="half", share="0.1").frame.count().release(mu=0.1)
    session.partition("g", name="parts")["a"].frame["x"].mean().release(mu=0.1)
    by.size().top(2).release(epsilon=0.1)
    scan = session.above_threshold(100, name="line", epsilon=0.1)
    scan.ask(frame.count(), 1)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("written") / "many.dpnb"
    session = opened(path)
    ask_everything(session)
    session.ledger.close()
    return path


@pytest.fixture
def asked(written: Path, tmp_path: Path) -> Path:
    """A copy for the test, which may change it."""
    return shutil.copy(written, tmp_path / "many.dpnb")


def rows_of(path: Path) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(path)) as file:
        file.row_factory = sqlite3.Row
        return [dict(row) for row in file.execute("SELECT * FROM events ORDER BY id")]


def is_of_batch(row: dict[str, Any]) -> bool:
    return str(row["request"]).startswith(BATCH_TABLE)


def test_the_words_of_an_answer_are_those_that_are_computed_from_its_row(
    asked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, session = rows_of(asked), opened(asked)
    answered = [row["id"] for row in rows if row["result"] is not None and not is_of_batch(row)]
    assert [row["id"] for row in rows if row["words"] is not None] == answered
    computed, releases = {}, session._core.releases
    for charge in session.ledger.by_id(tuple(answered)):
        computed[charge.id] = releases.reader.words(charge)
        if charge.kind == "release" and charge.node == "":
            answer = releases.answer_of(charge)
            assert computed[charge.id][0] == answer.description
    assert {row["id"]: repr(words_of(row["words"])) for row in rows if row["words"] is not None} == {
        number: repr(words) for number, words in computed.items()
    }
    together = session.log
    monkeypatch.setattr(type(session.ledger), "words", lambda self, ids: [])  # each row as one without words
    pd.testing.assert_frame_equal(together, opened(asked).log, check_exact=True)


def test_the_log_of_answered_rows_is_read_without_their_plans(asked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = opened(asked)
    read: list[int] = []
    words = AnswerReader.words

    def noted(reader: AnswerReader, charge: Charge) -> Words:
        read.append(charge.id)
        return words(reader, charge)

    monkeypatch.setattr(AnswerReader, "words", noted)
    log = opened(asked).log
    rows = {row["id"]: row for row in rows_of(asked)}
    assert set(read) == {number for number in log.index if rows[number]["words"] is None}
    assert len(read) < len(log) / 4
    assert all(rows[number]["result"] is None or is_of_batch(rows[number]) for number in read)
    assert len(session.log) == len(log)


def test_words_fit_into_the_room_that_is_asked_for_before_the_charge(asked: Path) -> None:
    for row in rows_of(asked):
        if row["words"] is not None:
            query, *_ = json.loads(row["words"])
            assert len(row["words"].encode()) <= stored_words_bytes(query)


def rewritten(path: Path, number: int, change: Any) -> None:
    """Other words of an answer, with the hashes that belong to them."""
    row = rows_of(path)[number - 1]
    words = None if change is None else json.dumps(change(json.loads(row["words"])))
    with closing(sqlite3.connect(path)) as file, file:
        salt, sealing = sealed(row["result"], words, row["salt"])
        changed = words, salt, sealing, result_hash(row["hash"], row["status"], sealing), number
        file.execute("UPDATE events SET words = ?, salt = ?, answer_digest = ?, result_hash = ? WHERE id = ?", changed)


def test_the_audit_computes_the_words_of_each_answer_again(asked: Path) -> None:
    assert audit(str(asked)).is_fine


@pytest.mark.parametrize(
    "change",
    [
        lambda words: ["count of nobody", *words[1:]],
        lambda words: [*words[:1], "12 (11 to 13)", *words[2:]],
        lambda words: [*words[:2], words[2] + 1, *words[3:]],
        lambda words: [*words[:5], "± 1 at 95%"],
        lambda words: [*words[:1], *[None] * 5],
        None,
    ],
    ids=["query", "answer", "value", "error", "no answer", "no words"],
)
def test_the_audit_finds_words_that_are_not_those_of_the_answer(tmp_path: Path, change: Any) -> None:
    session = opened(tmp_path / "many.dpnb")
    for mu in (0.1, 0.2):
        session.frame.count().release(mu=mu)
    session.ledger.close()
    assert audit(str(tmp_path / "many.dpnb")).problems == ()
    rewritten(tmp_path / "many.dpnb", 2, change)
    assert audit(str(tmp_path / "many.dpnb")).problems == ("Row 2 has other words than its answer.",)


def test_words_without_their_hash_are_refused(asked: Path) -> None:
    assert "words" in COLUMNS
    with closing(sqlite3.connect(asked)) as file, file:
        file.execute("UPDATE events SET words = ? WHERE id = 1", (json.dumps(["count", *[None] * 5]),))
    with pytest.raises(dpnb.errors.LedgerError, match="row 1 is not what was written"):
        opened(asked)


def test_words_that_no_ledger_contains_are_named_and_never_shown_raw(asked: Path) -> None:
    rewritten(asked, 1, lambda words: ["a\x1b[2Jb", *words[1:]])
    assert opened(asked).log["query"][1] == "a\\x1b[2Jb"
    rewritten(asked, 1, lambda words: words[:3])
    with pytest.raises(dpnb.errors.LedgerError, match=r"row 1 must be as dpnb wrote it"):
        _ = opened(asked).log


def test_an_empty_log_has_the_same_columns(tmp_path: Path) -> None:
    session = opened(tmp_path / "empty.dpnb")
    empty = session.log
    session.frame.count().release(mu=0.1)
    assert list(empty.columns) == list(session.log.columns)
    assert len(empty) == 0


def test_a_row_that_cannot_be_read_is_named(asked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = opened(asked)
    bad = next(one.request for one in session.ledger.charges() if one.request.startswith(BATCH_TABLE))

    def decoded(text: str) -> Request:
        if text == bad:
            raise msgspec.ValidationError
        return request_from(text)

    monkeypatch.setattr(query_state, "request_from", decoded)
    with pytest.raises(dpnb.errors.LedgerError, match=r"row \d+ must be as dpnb wrote it"):
        _ = session.log


def test_an_answer_is_written_also_if_no_words_can_be_made_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it would be answered again with other noise, as would all answers that fail in this way."""

    def failing(*_: object) -> None:
        raise LookupError

    monkeypatch.setattr(AnswerReader, "stored_words", failing)
    session = dpnb.Session(
        pd.DataFrame({"x": [1.0, 2.0]}),
        name="small",
        budget=dpnb.Budget.gdp(1),
        schema={"x": dpnb.Bounded(0, 3)},
        ledger=tmp_path / "small.dpnb",
    )
    first = session.frame.count().release(mu="0.5")
    (charge,) = session._core.account.ledger.charges()
    assert charge.status == "released"
    assert session.frame.count().release(mu="0.5").estimate == first.estimate
