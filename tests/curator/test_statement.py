"""A person's own statement: its figures are those of a recomputation by hand, and making it leaves no trace."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpnb
from core.people import ARGUMENTS, MODES, MU0, TABLE, ask_all, curator, of, paid_by_hand
from dpnb import __main__ as command_line
from dpnb.curator.personal_statement import Statement, statement
from dpnb.curator.personal_statement_text import statement_text
from dpnb.errors import LedgerError, SchemaError, StatementError
from forked import ran
from ledger.rows import contents, tamper


def near(*expected: Fraction) -> Any:
    """Noise is a little larger than it has to be, so that a question costs a little less than was said."""
    figures = [float(one) for one in expected]
    return pytest.approx(figures if len(figures) > 1 else figures[0], rel=1e-6, abs=1e-9)


def made(ledger: Path, *files: Path | str, unit: str = "p0", **arguments: Any) -> Statement:
    return statement(str(ledger), [str(file) for file in files], unit, **arguments)


@pytest.mark.parametrize("mode", MODES)
def test_figures_are_those_of_a_recomputation(mode: str, tmp_path: Path) -> None:
    session, ledger, file = curator(tmp_path, mode)
    ask_all(session)
    seen = set()
    for person in TABLE["person"].unique():
        got, expected = made(ledger, file, unit=person), paid_by_hand(of(person), mode)
        assert [entry.participation for entry in got.entries] == [took for _, _, took in expected], person
        for entry, (asked, paid, took) in zip(got.entries, expected, strict=True):
            assert entry.full_cost == near(asked)
            assert entry.paid == near(paid)
            seen.add(took)
        spent = sum(paid for _, paid, _ in expected)
        assert got.spent == near(spent)
        assert got.budget == MU0**2
        if got.excluded_since is None:
            assert got.left == near(MU0**2 - spent)
        else:
            assert got.left == 0
    assert seen == {"in full", "not affected", "excluded"} | ({"in part"} if mode == "clip" else set())


def test_what_is_counted_is_never_less_than_the_noise_allows_to_tell(tmp_path: Path) -> None:
    session, ledger, file = curator(tmp_path, "skip")
    ask_all(session)
    first = session.ledger.charges()[0]
    assert first.sigma is not None
    # Of a count each row is one step: exactly what two rows add, by the noise that the ledger says was drawn.
    assert made(ledger, file, unit="p0").entries[0].paid >= Fraction(4) / Fraction(first.sigma) ** 2


@pytest.mark.parametrize("mode", MODES)
def test_questions_of_another_version_are_charged_at_their_worst(mode: str, tmp_path: Path) -> None:
    session, ledger, file = curator(tmp_path, mode)
    session.frame.count().release(mu="0.39")
    after, _, _ = curator(tmp_path, mode, TABLE[TABLE["person"] != "p3"], version="2")
    ask_all(after)
    with pytest.raises(StatementError, match=r"versions '1', '2'.*--version 2"):
        made(ledger, file, unit="p0")
    got = made(ledger, file, unit="p0", version="2")
    expected = paid_by_hand(of("p0"), mode, before=Fraction(39, 100) ** 2)
    assert [entry.participation for entry in got.entries] == ["worst case", *(took for _, _, took in expected)]
    assert [entry.paid for entry in got.entries] == near(Fraction(39, 100) ** 2, *(paid for _, paid, _ in expected))
    assert "charged the worst case of version '1'" in statement_text(got)
    with pytest.raises(StatementError, match="'p3' is not"):
        made(ledger, file, unit="p3", version="2")


def test_the_worst_case_of_other_versions_may_be_more_than_the_budget(tmp_path: Path) -> None:
    session, ledger, file = curator(tmp_path, "skip")
    for mu in ("0.4", "0.4"):
        session.frame[session.frame["visits"] >= 1].count().release(mu=mu)
        session.frame[session.frame["visits"] >= 9].count().release(mu=mu)
    got = made(ledger, file, unit="p2", version="2")
    assert got.spent == near(2 * Fraction(4, 10) ** 2)
    text = statement_text(got)
    assert "more than the budget of 0.5" in text
    assert "left:         nothing" in text
    assert "version '2', of which the ledger has no query" in text


def test_it_says_for_whom_what_was_promised_and_what_became_of_each_question(tmp_path: Path) -> None:
    session, ledger, file = curator(tmp_path, "skip")
    ask_all(session)
    text = statement_text(made(ledger, file, unit="p2"))
    assert text.startswith("Statement for person p2\nFor this person alone: do not show it to the analyst.\n")
    assert "one person (at most 2 rows)" in text
    assert "NOT PRIVATE" not in text
    for entry, words in zip(made(ledger, file, unit="p2").entries, session.log["query"], strict=True):
        assert entry.query == words
        assert words in text
    assert "took part" in text
    assert "not affected" in text
    assert "left:         mu 0.4" in text


def test_whoever_is_out_for_good_is_told_since_when(tmp_path: Path) -> None:
    session, ledger, file = curator(tmp_path, "drop")
    ask_all(session)
    got = made(ledger, file, unit="p0")
    text = statement_text(got)
    assert got.excluded_since is not None
    assert f"excluded permanently since query {got.excluded_since}" in text
    assert f"excluded since query {got.excluded_since}" in text


def test_parts_of_a_partition_and_launches_are_lines_too(tmp_path: Path) -> None:
    session, ledger, file = curator(tmp_path, "skip")
    parts = session.partition("town", max_parts_per_unit=1)
    for town in parts:
        parts[town].frame.count().release(mu="0.1")
    got = made(ledger, file, unit="p1")
    assert [(entry.participation, entry.query) for entry in got.entries] == [
        ("free", "launch of the partition 'by town'"),
        ("in full", session.log["query"].iloc[1]),
        ("not affected", session.log["query"].iloc[2]),
    ]
    assert got.spent == near(Fraction(1, 400))


def test_under_zcdp_spending_is_in_rho(tmp_path: Path) -> None:
    session, ledger, file = curator(tmp_path, "skip", budget=dpnb.Budget(epsilon=1, delta=1e-6), filter="zcdp")
    session.frame.count().release(rho="0.005")
    got = made(ledger, file, unit="p0")
    assert got.budget == 2 * session.filter.budget.rho
    assert got.spent == near(Fraction(1, 100))
    assert "spent:        rho 0.005" in statement_text(got)


def test_seeded_test_noise_is_said_loudly(tmp_path: Path) -> None:
    session, ledger, file = curator(tmp_path, "skip", not_private_test_seed=1)
    session.frame.count().release(mu="0.1")
    text = statement_text(made(ledger, file))
    assert text.startswith("!!! NOT PRIVATE")
    assert text.endswith("NOT PRIVATE: seeded test noise !!!")


def test_the_order_of_columns_and_rows_and_other_columns_change_nothing(tmp_path: Path) -> None:
    crowded = pd.concat([TABLE, TABLE.assign(visits=3), TABLE.assign(visits=7)])  # more rows than count
    session, ledger, file = curator(tmp_path, "clip", crowded)
    ask_all(session)
    other = tmp_path / "other.csv"
    crowded.sample(frac=1, random_state=1)[["town", "visits", "person"]].assign(note="x").to_csv(other, index=False)
    for person in TABLE["person"].unique():
        assert made(ledger, file, unit=person).entries == made(ledger, other, unit=person).entries


def test_nothing_is_written_whether_a_session_uses_the_ledger_or_not(tmp_path: Path) -> None:
    session, ledger, file = curator(tmp_path, "skip")
    ask_all(session)
    used = contents(tmp_path)
    statement_text(made(ledger, file))
    now = contents(tmp_path)
    assert used == now
    rows = session.ledger.charges()
    session.ledger.close()
    closed = contents(tmp_path)
    assert set(closed) == {"clinic.dpnb", "table.csv"}
    assert len(made(ledger, file).entries) == len(rows)
    assert contents(tmp_path) == closed


@pytest.mark.waits
def test_a_ledger_that_a_killed_kernel_left_can_be_read(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    session, ledger, file = curator(tmp_path, "skip")
    session.ledger.close()
    code = (
        "import sys, os, pathlib; from core.people import *\n"
        "session, _, _ = curator(pathlib.Path(sys.argv[1]), 'skip')\n"
        "session.frame.count().release(mu='0.1'); os._exit(1)"
    )
    assert ran(tmp_path_factory.mktemp("program"), code, str(tmp_path)) == (1, "")
    assert (tmp_path / "clinic.dpnb-journal").exists()
    assert len(made(ledger, file).entries) == 1


def test_a_question_that_was_never_answered_is_charged_and_said_to_be(tmp_path: Path) -> None:
    session, ledger, file = curator(tmp_path, "skip")
    session.frame.count().release(mu="0.1")
    session.ledger.fail(session.ledger.charges()[0])  # too late: it was released
    with session.ledger.transaction():
        first = session.ledger.charges()[0]
        session.ledger.reserve(
            request_key="crash", table_version="1", query_key="q", request=first.request,
            loss=first.loss, sigma=first.sigma,
        )  # fmt: skip
    got = made(ledger, file)
    assert [entry.participation for entry in got.entries] == ["in full", "in full"]
    assert "took part; never answered" in statement_text(got)


def test_what_an_analyst_wrote_cannot_move_the_cursor(tmp_path: Path) -> None:
    session, ledger, file = curator(tmp_path, "skip")
    session.count_active_units("\x1b[2J\nall is well").release(mu="0.1")
    session.partition("town", name="\x1b[1Aby town")
    text = statement_text(made(ledger, file))
    assert "\x1b" not in text
    assert "all is well" in text
    assert "\\x1b[1Aby town" in text
    assert "\x1b" not in str(session)
    assert not session.log["query"].str.contains("\x1b").any()


def test_what_a_promise_says_loudly_cannot_move_the_cursor_either(tmp_path: Path) -> None:
    _, ledger, file = curator(tmp_path, "skip")
    got = made(ledger, file)
    text = statement_text(replace(got, metadata=replace(got.metadata, notice="\x1b[2Jall is well\n")))
    assert "\x1b" not in text
    assert text.startswith("!!! \\x1b[2Jall is well\\n !!!\n")


def test_an_interrupt_of_the_command_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dpnb.curator.personal_statement.statement", interrupted)
    assert command_line.main(["statement", "x.dpnb", "--table", "x.csv", "--unit", "p"]) == 130
    assert capsys.readouterr().err == "dpnb: interrupted; nothing was written\n"


# --- refusals --------------------------------------------------------------------------------------------------------


def test_a_ledger_with_worst_case_accounting_is_refused(tmp_path: Path) -> None:
    _, ledger, file = curator(tmp_path, "skip", accounting="worst-case", on_exhausted=None)
    with pytest.raises(StatementError, match=r"charges every unit the same; session.log"):
        made(ledger, file)


@pytest.mark.parametrize("name", ["none.dpnb", ":memory:", "", "folder"])
def test_a_ledger_that_is_not_there_is_refused_and_not_made(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(LedgerError, match="nothing was created"):
        statement(name, ["table.csv"], "p0")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_file_that_is_no_ledger_is_refused_and_left_alone(tmp_path: Path) -> None:
    for name, content in {"text": b"visits\n1\n", "empty": b""}.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(LedgerError):
            statement(str(path), ["table.csv"], "p0")
        assert path.read_bytes() == content
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    "change", ["UPDATE events SET table_version = '2'", "DELETE FROM events", "UPDATE metadata SET value = 'x'"]
)
def test_an_altered_ledger_is_refused(change: str, tmp_path: Path) -> None:
    session, ledger, file = curator(tmp_path, "skip")
    ask_all(session)
    session.ledger.close()
    tamper(ledger, change)
    with pytest.raises(LedgerError, match="must be as dpnb left it"):
        made(ledger, file)


def test_a_unit_or_a_column_that_is_not_there_is_refused(tmp_path: Path) -> None:
    session, ledger, file = curator(tmp_path, "skip")
    session.ledger.close()
    with pytest.raises(StatementError, match="'p9' is not"):
        made(ledger, file, unit="p9")
    for column in ("visits", "person"):
        TABLE.drop(columns=column).to_csv(tmp_path / "less.csv", index=False)
        with pytest.raises(SchemaError, match=column):
            made(ledger, tmp_path / "less.csv")


def test_table_files_have_to_be_there_and_of_a_known_kind(tmp_path: Path) -> None:
    _, ledger, file = curator(tmp_path, "skip")
    with pytest.raises(SchemaError, match="existing file"):
        made(ledger, tmp_path / "none.csv")
    (tmp_path / "table.ods").touch()
    with pytest.raises(SchemaError, match=r"\.csv .*\.parquet"):
        made(ledger, tmp_path / "table.ods")
    with pytest.raises(SchemaError, match="one FILE"):
        made(ledger, file, file)
    (tmp_path / "odd.csv").write_bytes(b"\xff\x00")
    with pytest.raises(SchemaError, match="is not in the table"):
        made(ledger, tmp_path / "odd.csv")
    (tmp_path / "odd.parquet").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SchemaError, match="readable table"):
        made(ledger, tmp_path / "odd.parquet")


# --- whose statement -------------------------------------------------------------------------------------------------


def test_rows_are_named_by_their_place_in_the_file(tmp_path: Path) -> None:
    session, ledger, file = curator(tmp_path, "skip", privacy_unit=None, max_rows_per_unit=None)
    session.frame["visits"].sum().release(mu="0.1")
    for place, visits in enumerate(TABLE["visits"]):
        got = made(ledger, file, unit=str(place))
        assert got.spent == near(Fraction(int(visits) ** 2, 10**4))
        assert got.unit == f"row {place} of the file"
    for unit in (str(len(TABLE)), "-1", "p0", "1.0", ""):
        with pytest.raises(StatementError, match=f"from 0 to {len(TABLE) - 1}"):
            made(ledger, file, unit=unit)


def test_a_text_file_is_refused_if_the_sessions_may_have_had_numbers_for_its_units(tmp_path: Path) -> None:
    table = pd.DataFrame({"person": [5, 7], "visits": [10, 2], "town": "north"})
    session, ledger, file = curator(tmp_path, "skip", table)
    session.frame["visits"].sum().release(mu="0.1")
    with pytest.raises(StatementError, match=r"read as texts.*\.parquet file, or declare unit_type='integer'"):
        made(ledger, file, unit="5")
    table.to_parquet(tmp_path / "table.parquet")
    assert made(ledger, tmp_path / "table.parquet", unit="5").spent == near(Fraction(1, 400))


def test_units_whose_portable_integers_collide_are_told_apart(tmp_path: Path) -> None:
    table = pd.DataFrame({"person": [5, -5, 5 + 2**60, 7], "visits": [10, 2, 4, 0], "town": "north"})
    session, ledger, file = curator(tmp_path, "skip", table, unit_type="integer")
    session.frame["visits"].sum().release(mu="0.1")
    for person, visits in zip(table["person"], table["visits"], strict=True):
        got = made(ledger, file, unit=str(person))
        assert got.spent == near(Fraction(int(visits) ** 2, 400 * 100))


def test_several_tables_are_named_on_the_command_line(tmp_path: Path) -> None:
    visits, stays = TABLE[["person", "visits"]], pd.DataFrame({"person": ["p9", "p0"], "days": [3, 7]})
    session = dpnb.Session(
        {"visits": visits, "stays": stays},
        **{**ARGUMENTS, "schema": {"visits": {"visits": dpnb.Bounded(0, 10)}, "stays": {"days": dpnb.Bounded(0, 10)}}},
        ledger=tmp_path / "clinic.dpnb",
    )
    session.table("stays")["days"].sum().release(mu="0.1")
    session.table("visits").count().release(mu="0.1")
    for name, frame in (("visits", visits), ("stays", stays)):
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    files = [f"{name}={tmp_path / name}.csv" for name in ("visits", "stays")]
    for given in (files, files[::-1]):
        got = made(tmp_path / "clinic.dpnb", *given, unit="p9")
        assert [entry.participation for entry in got.entries] == ["in full", "not affected"]
        assert got.spent == near(Fraction(9, 400 * 100))
    for wrong in (files[:1], [files[0], files[0]], ["x=y.csv", *files], [f"{tmp_path}/visits.csv"]):
        with pytest.raises(SchemaError, match=r"--table: must be"):
            made(tmp_path / "clinic.dpnb", *wrong)
