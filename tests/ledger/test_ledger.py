"""The ledger remembers every charge as it was written, also while others write."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing, suppress
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnb.accounting.losses import GDP
from dpnb.errors import LedgerError
from dpnb.ledger import Ledger, sqlite_file
from dpnb.ledger.charge import COLUMNS
from dpnb.mechanisms.measurement import Measurement
from dpnb.threads import ThreadTask
from ledger.rows import NOISY, answered, filled, opened, reserve
from rationals import fractions
from threads import at_once


def test_a_reopened_ledger_has_every_row_as_it_was(path: Path) -> None:
    written = filled(path)
    with opened(path) as ledger:
        assert ledger.charges() == written
        assert [charge.status for charge in written] == ["released", "released", "reserved", "failed", "released"]
        assert [charge.observations for charge in written] == [(1,), (2,), (3,), (4,), (1, 2)]
        assert [charge.measurement for charge in written] == [NOISY, NOISY, None, None, None]
        assert ledger.parameters == {"gamma": "0x1p-3"}


positive_floats = st.floats(min_value=5e-324, allow_nan=False, allow_infinity=False)
losses = fractions(0, 10**30).map(GDP.from_mu_squared)


@given(
    texts=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=2, max_size=2),
    target=losses,
    loss=losses,
    sigma=positive_floats,
    tau=st.none() | positive_floats,
    looks=st.lists(st.integers(1, 10**6)).map(tuple),
    values=st.lists(st.integers(-(2**200), 2**200)).map(tuple),
)
def test_nothing_is_rounded_on_its_way_through_the_file(
    texts: list[str],
    target: GDP,
    loss: GDP,
    sigma: float,
    tau: float | None,
    looks: tuple[int, ...],
    values: tuple[int, ...],
) -> None:
    version, request = texts
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.dpnb"
        with opened(path) as ledger:
            charge = reserve(
                ledger,
                "a",
                table_version=version,
                request=request,
                total_loss=target,
                loss=loss,
                sigma=sigma,
                tau=tau,
                observations=looks,
            )
            answered(ledger, charge, Measurement(values, -20, sigma))
        with opened(path) as ledger:
            (read,) = ledger.charges()
    assert (read.table_version, read.request) == (version, request)
    assert (read.total_loss, read.loss, read.sigma, read.tau) == (target, loss, sigma, tau)
    assert read.observations == (*looks, 1)
    assert read.measurement == Measurement(values, -20, sigma)


def test_a_request_is_found_by_its_key_and_a_question_by_its_released_looks(path: Path) -> None:
    filled(path)
    with opened(path) as ledger:
        found = ledger.by_key("", "1", "b")
        assert found is not None
        assert found.id == 2
        assert [ledger.by_key(*key) for key in (("", "1", "z"), ("7", "1", "b"), ("", "2", "b"))] == [None] * 3
        assert [look.id for look in ledger.observations("1", "", "visits")] == [1]  # 3 and 4 have no values
        assert ledger.observations("2", "", "visits") == []
        assert ledger.observations("1", "7", "visits") == []  # another branch
        assert ledger.count == 5
        assert [charge.id for charge in ledger.charges(after=3)] == [4, 5]
        assert [charge.id for charge in ledger.by_id((4, 1))] == [1, 4]


def test_one_request_cannot_be_charged_twice(path: Path) -> None:
    with opened(path) as ledger:
        reserve(ledger, "a")
        with pytest.raises(LedgerError):
            reserve(ledger, "a")
        assert len(ledger.charges()) == 1
        reserve(ledger, "b")
    with opened(path) as ledger:
        assert [charge.id for charge in ledger.charges()] == [1, 2]
        reserve(ledger, "a", node="7")  # the same request of another node, and for another version of the table
        reserve(ledger, "a", table_version="2")
        with pytest.raises(LedgerError):
            reserve(ledger, "a", table_version="2")
        found = [ledger.by_key(node, version, "a") for node, version in (("", "1"), ("7", "1"), ("", "2"))]
        assert [charge and charge.id for charge in found] == [1, 3, 4]


def test_of_two_answers_to_one_charge_the_first_stands(path: Path) -> None:
    with opened(path) as one, opened(path) as other:
        charge = reserve(one, "a")
        taken_up = other.by_key("", "1", "a")
        assert taken_up is not None
        first = answered(other, taken_up)
        assert answered(one, charge, Measurement((0, 0, 0), -3, 1.25)) == first
        one.fail(charge)
        assert other.by_key("", "1", "a") == first


def test_a_failed_charge_can_be_answered_later(path: Path) -> None:
    with opened(path) as ledger:
        charge = reserve(ledger, "a")
        ledger.fail(charge)
        assert answered(ledger, charge).status == "released"
    with opened(path) as ledger:
        assert ledger.charges()[0].measurement == NOISY


@pytest.mark.parametrize("trouble", [RuntimeError, KeyboardInterrupt])
def test_a_transaction_that_is_left_by_an_exception_never_was(path: Path, trouble: type[BaseException]) -> None:
    def interrupted(ledger: Ledger) -> None:
        with ledger.transaction():
            last = ledger.charges()[-1]
            ledger.reserve(
                request_key="lost",
                table_version="1",
                query_key="",
                total_loss=last.total_loss,
                loss=last.loss,
                sigma=1.0,
                tau=None,
                observations=(),
            )
            raise trouble

    with opened(path) as ledger:
        reserve(ledger, "a")
        with pytest.raises(trouble):
            interrupted(ledger)
        assert [charge.request_key for charge in ledger.charges()] == ["a"]
        reserve(ledger, "b")
    with opened(path) as ledger:
        assert [(charge.id, charge.request_key) for charge in ledger.charges()] == [(1, "a"), (2, "b")]


@pytest.mark.parametrize("after", ["BEGIN IMMEDIATE", "INSERT INTO events", "COMMIT"])
def test_an_interrupt_at_any_statement_leaves_the_file_free_for_others(
    path: Path, monkeypatch: pytest.MonkeyPatch, after: str
) -> None:
    class Interrupted(sqlite3.Connection):
        armed = False

        def execute(self, statement: str, *arguments: Any) -> sqlite3.Cursor:
            result = super().execute(statement, *arguments)
            if Interrupted.armed and statement.startswith(after):
                raise KeyboardInterrupt
            return result

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **k, factory=Interrupted))
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.1)
    with opened(path) as ledger, opened(path) as other:
        Interrupted.armed = True
        with pytest.raises(KeyboardInterrupt):
            reserve(ledger, "a")
        Interrupted.armed = False
        durable_rows = 1 if after == "COMMIT" else 0
        reserve(other, "b")
        reserve(ledger, "c")
        assert len(other.charges()) == durable_rows + 2


def test_losses_add_up_exactly_after_a_thousand_rows(path: Path) -> None:
    with opened(path) as ledger, ledger.transaction():
        for number in range(1000):
            ledger.reserve(
                request_key=str(number),
                table_version="1",
                query_key="",
                total_loss=GDP(0.1),
                loss=GDP(0.1),
                sigma=1.0,
                tau=None,
                observations=(),
            )
    with opened(path) as ledger:
        assert sum(charge.loss.mu_squared for charge in ledger.charges()) == Fraction(10)


def test_ledgers_on_one_file_see_each_others_rows_at_once(path: Path) -> None:
    with opened(path) as one, opened(path) as other:
        reserve(one, "a")
        assert [charge.request_key for charge in other.charges()] == ["a"]
        reserve(other, "b")
        assert [charge.request_key for charge in one.charges()] == ["a", "b"]


def test_a_ledger_that_another_kernel_makes_during_any_step_of_ours_is_one_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.01)
    connect = sqlite3.connect
    made: list[int] = []
    refusals: list[str] = []
    for step in range(1, 100):
        path = tmp_path / f"{step}.dpnb"
        statements: list[str] = []

        def other_kernel(statement: str, path: Path = path, step: int = step, seen: list[str] = statements) -> None:
            seen.append(statement)
            if len(seen) == step:
                monkeypatch.setattr(sqlite3, "connect", connect)
                try:
                    with opened(path) as other:
                        reserve(other, "other")
                    made.append(step)
                except LedgerError as error:
                    refusals.append(str(error))

        def watched(*arguments: Any, tell: Any = other_kernel, **options: Any) -> sqlite3.Connection:
            connection = connect(*arguments, **options)
            connection.set_trace_callback(tell)
            return connection

        monkeypatch.setattr(sqlite3, "connect", watched)
        with opened(path) as ours:
            reserve(ours, "ours")
            seen = [charge.request_key for charge in ours.charges()]
        if len(statements) < step:
            break
        with opened(path) as later:  # the other one may also have come while we closed
            keys = [charge.request_key for charge in later.charges()]
        assert keys[: len(seen)] == seen
        assert keys in (["other", "ours"], ["ours", "other"], ["ours"]), statements[step - 1]
        assert ("other" in keys) == (made[-1:] == [step]), statements[step - 1]
    assert len(made) > 5
    assert all("another kernel has held it" in refusal for refusal in refusals)  # while we wrote
    assert step == len(made) + len(refusals) + 1 > 20


@pytest.mark.waits
def test_threads_write_one_after_the_other(path: Path) -> None:
    def write(thread: int) -> None:
        for number in range(20):
            answered(ledger, reserve(ledger, f"{thread}.{number}"))

    with opened(path) as ledger:
        assert at_once(*(partial(write, thread) for thread in range(4))) == []
    with opened(path) as ledger:  # verifies the chain
        charges = ledger.charges()
    assert [charge.id for charge in charges] == list(range(1, 81))
    assert {charge.request_key for charge in charges} == {
        f"{thread}.{number}" for thread in range(4) for number in range(20)
    }
    assert {charge.status for charge in charges} == {"released"}


def test_a_file_that_another_kernel_holds_is_refused_after_a_while(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(path) as holder:
        monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.05)
        with opened(path) as ledger:
            with holder.transaction(), pytest.raises(LedgerError, match="another kernel has held it"):
                reserve(ledger, "a")
            assert ledger.charges() == []
            reserve(ledger, "a")


def test_entries_say_of_each_row_what_counts_and_are_read_once(path: Path) -> None:
    with opened(path) as ledger, opened(path) as other:
        reserve(ledger, "a", cell_id="first")
        reserve(other, "b", node="3", loss=GDP("0.2"), kind="launch", launch={"mechanism": "partition"})
        charges, entries = ledger.charges(), ledger.summaries()
        for charge, entry in zip(charges, entries, strict=True):
            kept = {
                name: value for name, value in msgspec.structs.asdict(entry).items() if name not in ("time", "request")
            }
            assert all(getattr(charge, name) == value for name, value in kept.items())
            assert entry.request == (None if charge.launch is None else charge.request)  # that of a query may be long
            assert entry.time is None  # only that of acts and requests for budget counts
        reserve(other, "c")
        assert [entry.id for entry in ledger.summaries(after=1)] == [2, 3]
        assert ledger.summaries()[0] is entries[0]


def test_entries_up_to_a_known_row_need_no_look_at_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(path) as ledger, opened(path) as other:
        reserve(ledger, "a")
        written = ledger.summaries(until=1)
        reserve(other, "b")
        assert ledger.summaries(until=1) == written == other.summaries()[:1]
        assert [entry.id for entry in ledger.summaries(until=2)] == [1, 2]  # that of another kernel is looked for
        reserve(other, "c")
        assert [entry.id for entry in ledger.summaries()] == [1, 2, 3]
        reserve(ledger, "d")
        monkeypatch.setattr(ledger._file, "run", None)
        assert [entry.id for entry in ledger.summaries(until=4)] == [1, 2, 3, 4]


def test_entry_of_a_row_that_may_yet_be_undone_is_not_told(path: Path) -> None:
    with opened(path) as ledger:
        reserve(ledger, "a")
        with suppress(ZeroDivisionError), ledger.transaction():
            ledger.reserve(request_key="b", table_version="1", query_key="visits", loss=GDP("0.2"))
            assert [entry.id for entry in ledger.summaries()] == [1]
            raise ZeroDivisionError
        assert [entry.id for entry in ledger.summaries(until=1)] == [1]
        reserve(ledger, "c", loss=GDP("0.3"))
        assert [entry.loss for entry in ledger.summaries()] == [GDP("0.1"), GDP("0.3")]


@pytest.mark.parametrize("number", [0, -1, -(2**63)])
def test_row_before_the_first_is_noticed(path: Path, number: int) -> None:
    filled(path)
    with closing(sqlite3.connect(path)) as file, file:
        columns = ", ".join(name for name in COLUMNS if name not in ("id", "request_key"))
        copied = f"SELECT ?, 'x', {columns} FROM events WHERE id = 1"
        file.execute(f"INSERT INTO events (id, request_key, {columns}) {copied}", (number,))
    with pytest.raises(LedgerError, match="row 1 is not what was written"):
        opened(path)


def test_rows_of_other_kernels_are_looked_for_once_within_a_moment(path: Path) -> None:
    with opened(path) as ledger, opened(path) as other:
        reserve(other, "a")
        with ledger.one_moment():
            reserve(other, "b")
            assert len(ledger.summaries()) == 1
            with ledger.one_moment():
                assert len(ledger.summaries()) == 1
            assert len(ledger.summaries()) == 1
            seen = ThreadTask(ledger.summaries)
            seen.start()
            assert len(seen.result()) == 2, "another thread looks"
        reserve(other, "c")
        assert len(ledger.summaries()) == 3


def test_a_charge_within_a_moment_counts_the_rows_of_other_kernels(path: Path) -> None:
    """Otherwise two kernels could spend one budget twice."""
    with opened(path) as ledger, opened(path) as other, ledger.one_moment():
        reserve(other, "a")
        with ledger.transaction():
            assert [one.id for one in ledger.summaries()] == [1]
        assert reserve(ledger, "b").id == 2


def test_a_moment_ends_with_an_error_and_after_a_second(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(path) as ledger, opened(path) as other:
        with suppress(KeyboardInterrupt), ledger.one_moment():
            raise KeyboardInterrupt
        reserve(other, "a")
        assert len(ledger.summaries()) == 1
        monkeypatch.setattr("dpnb.ledger.ledger.MOMENT", -1.0)
        with ledger.one_moment():
            reserve(other, "b")
            assert len(ledger.summaries()) == 2
