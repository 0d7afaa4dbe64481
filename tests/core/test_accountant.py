"""One budget, whichever kernel spends it: filter and odometer follow the ledger, and no race admits too much."""

from __future__ import annotations

import sys
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpnb
from dpnb._backends.memory import memory_backend
from dpnb._core.accountant import later_sessions
from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.admission import admit
from dpnb.accounting.filters import GDPFilter
from dpnb.accounting.grid import grid_down
from dpnb.accounting.losses import GDP
from dpnb.errors import BudgetExceeded, LedgerError
from rationals import fractions
from threads import at_once

if sys.platform == "win32":
    pytest.skip("needs processes that fork", allow_module_level=True)

from kernels import FIRST, Kernel, ask, ask_slowly, figures, kernels, make_and_ask, open_session, race


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "clinic.dpnb"


# --- one kernel after the other ------------------------------------------------------------------------------------


def test_a_later_kernel_finds_the_same_filter_and_odometer(path: Path) -> None:
    session = open_session(path)
    for number, mu in enumerate(("0.1", "1/3", "0.123456789")):
        ask(session, number, mu)
    later = open_session(path)
    assert later.spent.mu_squared == Fraction(1, 100) + grid_down(Fraction(1, 9)) + Fraction("0.123456789") ** 2
    assert later.filter == session.filter
    assert later.odometer == session.odometer
    assert later.odometer.bound == session.odometer.bound > 0


@pytest.mark.parametrize("name", ["gdp", "zcdp", "rdp", "approx-dp", "basic", "rogers"])
def test_rows_that_are_counted_at_once_are_counted_as_one_after_another(
    name: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened() -> dpnb.Session:
        return dpnb.Session(
            pd.DataFrame({"x": range(10)}),
            name="rows",
            budget=dpnb.Budget(epsilon=100, delta=1e-6, discovery_delta=1e-7 if name == "gdp" else 0),
            schema={"x": dpnb.Bounded(0, 10)},
            filter=name,
            ledger=tmp_path / "rows.dpnb",
        )

    session = opened()
    for number, mu in enumerate(("0.1", "0.1", "1/7", "0.1", "0.02", "1/7")):
        session.frame[session.frame["x"] > number].count().release(mu=mu)
    at_once = opened()._core.account.sync()
    monkeypatch.setattr(Accountant, "_add_batch", lambda self, batch: [self._add(charge) for charge in batch])
    one_by_one = opened()._core.account
    assert at_once == one_by_one.sync() == session._core.account.sync()
    monkeypatch.undo()
    assert opened()._core.account._cost_fractions == one_by_one._cost_fractions


def test_the_figures_of_a_ledger_are_those_it_was_made_with(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = open_session(path).odometer
    monkeypatch.setattr(later_sessions, "ODOMETER_DELTA", Fraction(1, 10))
    assert open_session(path).odometer == made
    assert open_session(path.with_name("new.dpnb")).odometer != made


@given(
    budget=fractions(Fraction(1, 100), 10),
    asked=st.lists(st.tuples(st.integers(1, 30), st.integers(1, 40)), max_size=12),
)
def test_an_account_admits_what_the_filter_admits_and_nothing_else(
    budget: Fraction, asked: list[tuple[int, int]]
) -> None:
    account = Accountant.open(":memory:", dpnb.Budget.gdp(budget), {"name": "clinic"})
    filter_ = GDPFilter(budget)
    for number, (numerator, denominator) in enumerate(asked):
        loss = GDP(Fraction(numerator, denominator))
        try:
            charge(account, str(number), loss)
        except BudgetExceeded:
            assert not filter_.admits(loss)
        else:
            filter_ = filter_.step(loss)
        assert account.filter == filter_
    account.ledger.close()


def charge(account: Accountant, key: str, loss: GDP) -> None:
    with account.ledger.transaction():
        admit(account, "question", loss, GDP(0))
        account.ledger.reserve(
            request_key=key,
            table_version="1",
            query_key="",
            total_loss=loss,
            loss=loss,
            sigma=1.0,
            tau=None,
            observations=(),
        )


def test_an_account_decides_on_what_others_have_charged_meanwhile(path: Path) -> None:
    one, other = (Accountant.open(str(path), dpnb.Budget.gdp(1), {"name": "clinic"}) for _ in range(2))
    charge(one, "a", GDP("0.8"))
    with pytest.raises(BudgetExceeded):
        charge(other, "b", GDP("0.61"))
    charge(other, "b", GDP("0.6"))
    with pytest.raises(BudgetExceeded):
        charge(one, "c", GDP("1e-9"))
    one.ledger.close()
    other.ledger.close()


def test_a_refusal_leaves_no_row(path: Path) -> None:
    session = open_session(path)
    ask(session, 0, "0.8")
    with pytest.raises(BudgetExceeded, match=r"mu=0\.6, "):
        ask(session, 1, "0.60001")
    assert len(session.ledger.charges()) == 1
    ask(session, 1, "0.6")
    assert session.headroom == 0


# --- one promise ---------------------------------------------------------------------------------------------------

OTHER_PROMISES: dict[str, tuple[str, dict[str, Any]]] = {
    "name": ("session_name", {"name": "ward"}),
    "a larger budget": ("budget", {"budget": dpnb.Budget.gdp(2)}),
    "a smaller budget": ("budget", {"budget": dpnb.Budget.gdp("0.999999999")}),
    "a budget with a delta": ("budget", {"budget": dpnb.Budget(epsilon=1, delta=1e-6)}),
    "wider bounds": ("column 'visits'", {"schema": {"visits": dpnb.Bounded(0, 1001)}}),
    "another type": ("column 'visits'", {"schema": {"visits": dpnb.Text()}}),
    "rows": ("privacy_unit", {"privacy_unit": None, "max_rows_per_unit": None}),
    "another unit": ("privacy_unit", {"privacy_unit": "plan"}),
    "more rows for each unit": ("max_rows_per_unit", {"max_rows_per_unit": 3}),
    "test noise": ("noise", {"not_private_test_seed": 1}),
}


@pytest.mark.parametrize(("what", "changes"), OTHER_PROMISES.values(), ids=OTHER_PROMISES)
def test_a_ledger_made_for_another_promise_is_refused_uncharged_and_unchanged(
    path: Path, what: str, changes: dict[str, Any]
) -> None:
    session = open_session(path)
    ask(session, 0, FIRST)
    session.ledger.close()
    before = path.read_bytes()
    rows = pd.DataFrame({"person": ["p1"], "visits": [1], "plan": ["a"]})
    arguments: dict[str, Any] = {
        "name": "clinic",
        "privacy_unit": "person",
        "max_rows_per_unit": 2,
        "budget": dpnb.Budget.gdp(1),
        "schema": {"visits": dpnb.Bounded(0, 1000)},
        "ledger": path,
    }
    with pytest.raises(
        LedgerError, match=f"({what}: |created for another {what}; .*)the ledger has .*, the session has .*give"
    ) as no:
        dpnb.Session(rows, **{**arguments, **changes})
    assert str(path) in str(no.value)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == before
    assert open_session(path).spent == GDP(FIRST)


def test_a_public_size_and_a_version_are_no_part_of_the_promise(path: Path) -> None:
    ask(open_session(path), 0, FIRST)
    assert open_session(path, public_size=7, version="2").spent == GDP(FIRST)


# --- several kernels at once ---------------------------------------------------------------------------------------


def test_two_sessions_of_one_process_share_the_budget(path: Path) -> None:
    one, other = open_session(path), open_session(path)
    answer = ask(one, 0, "0.6")
    assert other.spent == GDP("0.6")
    assert figures(ask(other, 0, "0.6")) == figures(answer)
    with pytest.raises(BudgetExceeded):
        ask(other, 1, "0.81")
    ask(other, 1, "0.8")
    assert one.headroom == 0
    assert one.odometer == other.odometer
    with pytest.raises(BudgetExceeded, match="nothing is left"):
        ask(one, 2, "0.001")


@pytest.mark.waits
def test_threads_that_ask_the_same_at_once_pay_once_and_hear_the_same(path: Path) -> None:
    session = open_session(path)
    heard: list[tuple[Any, ...]] = []

    def asking() -> None:
        heard.append(figures(ask(session, 0, FIRST)))

    assert at_once(*[asking] * 6) == []
    assert len(heard) == 6
    assert len(set(map(repr, heard))) == 1
    assert session.spent == GDP(FIRST)


@pytest.mark.waits
def test_threads_that_ask_different_things_at_once_never_exceed_the_budget(path: Path) -> None:
    session = open_session(path)
    admitted: list[int] = []

    def asking(first: int) -> None:
        for number in range(first, first + 10):
            try:
                ask(session, number, "0.2")
            except BudgetExceeded:
                continue
            admitted.append(number)

    assert at_once(*(partial(asking, 10 * number) for number in range(5))) == []
    assert len(admitted) == 25  # 25 times 0.04 is the whole budget, exactly
    assert session.headroom == 0


@pytest.mark.parametrize(
    ("mu", "budget", "fitting"),
    [
        ("0.1", dpnb.Budget.gdp("0.6"), 36),
        ("0.1", dpnb.Budget.gdp("0.59999999999999999999"), 35),
        ("1/7", dpnb.Budget.gdp("6/7"), 36),
    ],
)
@pytest.mark.waits
def test_processes_that_race_spend_the_budget_to_the_last_unit_and_not_one_more(
    path: Path, mu: str, budget: dpnb.Budget, fitting: int
) -> None:
    questions = [list(range(first, first + 15)) for first in range(0, 60, 15)]
    with kernels(*(Kernel(race, path, numbers, mu, budget) for numbers in questions)) as started:
        for kernel in started:
            assert kernel.hear() == "ready"
        for kernel in started:
            kernel.pipe.send("go")
        admitted = [number for kernel in started for number in kernel.hear()]
        assert [kernel.end() for kernel in started] == [0] * 4
    session = open_session(path, budget=budget)
    assert len(admitted) == len(session.ledger.charges()) == fitting
    each = GDP.from_mu_squared(grid_down(Fraction(mu) ** 2))
    assert session.spent.mu_squared == fitting * each.mu_squared <= session.filter.budget.mu_squared
    for number in admitted:  # each of them is in the ledger, and free now
        assert ask(session, number, mu).cost == each
    assert session.spent.mu_squared == fitting * each.mu_squared


@pytest.mark.waits
def test_processes_that_ask_the_same_of_a_new_ledger_at_once_pay_once_and_hear_the_same(path: Path) -> None:
    with kernels(*(Kernel(make_and_ask, path) for _ in range(4))) as started:
        for kernel in started:
            assert kernel.hear() == "ready"
        for kernel in started:
            kernel.pipe.send("go")
        heard = [kernel.hear() for kernel in started]
        assert [kernel.end() for kernel in started] == [0] * 4
    session = open_session(path)
    assert heard == [figures(ask(session, 0, FIRST))] * 4
    assert session.spent == GDP(FIRST)
    assert len(session.ledger.charges()) == 1


@pytest.mark.waits
def test_a_charge_that_another_kernel_took_up_is_answered_as_that_one_did(path: Path) -> None:
    with kernels(Kernel(ask_slowly, path)) as (kernel,):
        assert kernel.hear() == "charged"
        session = open_session(path)
        assert session.spent == GDP(FIRST)
        quicker = figures(ask(session, 0, FIRST))
        kernel.pipe.send("go on")
        assert kernel.hear() == quicker
        assert kernel.end() == 0
    assert session.spent == GDP(FIRST)
    assert figures(ask(session, 0, FIRST)) == quicker


def test_a_failure_here_does_not_undo_the_answer_that_another_kernel_gave(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_session(path)
    quicker: list[tuple[Any, ...]] = []

    execute = memory_backend.execute

    def overtaken(*_: Any) -> list[int]:
        monkeypatch.setattr(memory_backend, "execute", execute)
        quicker.append(figures(ask(open_session(path), 0, FIRST)))
        raise RuntimeError

    monkeypatch.setattr(memory_backend, "execute", overtaken)
    with pytest.raises(dpnb.errors.ExecutionError):
        ask(session, 0, FIRST)
    assert [figures(ask(session, 0, FIRST))] == quicker
    assert session.spent == GDP(FIRST)


# --- nothing of the table ------------------------------------------------------------------------------------------

MARKERS = ("sekret", "u-5501", "harbor", "87131.25", "pivoted")


def files_of(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


def marked_session(path: Path) -> dpnb.Session:
    rows = pd.DataFrame(
        {
            "person": ["u-5501", "u-5501", "u-5502", None] * 50,
            "visits": [87131.25, "sekret", 4.1234567, 5.7654321] * 50,
            "town": ["harbor", "north", "south", "north"] * 50,
            "pivoted": range(200),
        }
    )
    return dpnb.Session(
        rows,
        name="clinic",
        privacy_unit="person",
        max_rows_per_unit=2,
        budget=dpnb.Budget.gdp(1),
        schema={"visits": dpnb.Bounded(0, 10), "town": dpnb.Categories(["north", "south"])},
        ledger=path,
    )


def test_no_byte_of_the_ledger_comes_from_the_table(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = marked_session(path)
    sums: list[int] = []
    execute = memory_backend.execute

    def listening(*arguments: Any) -> Any:
        result = execute(*arguments)
        sums.extend(int(total) for total in result)
        return result

    monkeypatch.setattr(memory_backend, "execute", listening)
    session.frame["visits"].sum().release(mu="0.3")
    session.frame.groupby("town")["visits"].mean().release(mu="0.3")

    def failing(*_: Any) -> Any:
        raise RuntimeError("sekret u-5501")

    monkeypatch.setattr(memory_backend, "execute", failing)
    with pytest.raises(dpnb.errors.ExecutionError):
        session.frame.count_units().release(mu="0.1")
    # Large sums alone: a 0 is everywhere.  Of these, the digits as text and the bytes as a processor stores them.
    large = [total for total in sums if abs(total) > 10**8]
    assert len(large) >= 2
    telling = [
        *(marker.encode() for marker in MARKERS),
        *(str(total).encode() for total in large),
        *(total.to_bytes(8, order, signed=True) for total in large for order in ("big", "little")),
    ]
    for moment in ("open", "closed"):
        found = files_of(path.parent)
        assert b"north" in found, moment  # the schema is there: the search below would find something
        assert not [piece for piece in telling if piece in found], moment
        session.ledger.close()


def test_a_refused_table_leaves_nothing_in_the_ledger(path: Path) -> None:
    session = marked_session(path)
    with pytest.raises(BudgetExceeded):
        session.frame["visits"].sum().release(mu=2)
    assert session.ledger.charges() == []
    assert not [marker for marker in MARKERS if marker.encode() in files_of(path.parent)]
