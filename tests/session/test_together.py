"""``python -m dpnb report A B``: what several ledgers guarantee together, and what is refused."""

from __future__ import annotations

import shutil
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpnb
from dpnb.__main__ import main
from dpnb._core.accountant.granting import freeze, note_restored
from dpnb.errors import InvalidValueError
from dpnb.ledger import Ledger
from dpnb.session.disclosure.together import sum_of, sum_text
from session.statements import opened


def ledger(path: Path, *mu: float, frozen: bool = False, **changes: Any) -> str:
    """The ledger of a session that has released something, after a row that charges nothing if it is `frozen`."""
    session = opened(path, **changes)
    if frozen:
        freeze(session._core.account, "not yet", version="1")
    for one in mu:
        session.frame.count().release(mu=one)
    session.ledger.close()
    return str(path)


@pytest.fixture
def two(tmp_path: Path) -> tuple[str, str]:
    """Ledgers that were both used, the second one after the first."""
    return ledger(tmp_path / "a.dpnb", 0.1, 0.05), ledger(tmp_path / "b.dpnb", 0.1, budget=dpnb.Budget.gdp(0.3))


def test_the_sum_is_that_of_the_whole_budgets(two: tuple[str, str]) -> None:
    found = sum_of(two, same_unit=True)
    budget = found.total.filter.budget
    assert budget is not None
    expected = dpnb.Budget(epsilon=1, delta=1e-6).loss.mu_squared + Fraction(9, 100)
    assert budget.parts == (expected, 0, 0)
    assert (found.total.filter.guarantee, found.total.delta) == ("0.3822-GDP", Fraction(2, 10**6))
    text = " ".join(sum_text(found).split())
    assert "0.3822-GDP, which implies (1.622, 2e-6)-DP" in text
    assert "Charged so far: mu 0.1 of 0.2367" in text
    for path in two:
        with closing(Ledger.read_only_copy(path)) as one:
            assert one.head in text


# --- the unit ---------------------------------------------------------------------------------------------------------


def test_the_ledgers_and_the_unit_are_named_in_the_words_of_the_curator(tmp_path: Path) -> None:
    words = {"statement": {"title": "Stays in hospitals"}, "unit_label": "patient"}
    first, second = ledger(tmp_path / "a.dpnb", 0.1, **words), ledger(tmp_path / "b.dpnb", 0.1)
    text = " ".join(sum_text(sum_of((first, second), same_unit=True)).split())
    assert "Stays in hospitals: clinic (" in text
    assert "One unit (one patient), which is named by column 'person'" in text
    other = ledger(tmp_path / "c.dpnb", 0.1, unit_label="person")
    assert "One unit, which" in sum_text(sum_of((first, other), same_unit=True))  # they differ


def test_only_the_curator_says_that_the_unit_is_the_same(two: tuple[str, str]) -> None:
    with pytest.raises(InvalidValueError, match=r"column 'person'; .*column 'person'; if .*say so with --same-unit"):
        sum_of(two, same_unit=False)
    text = " ".join(sum_text(sum_of(two, same_unit=True)).split())
    assert "The curator says that the same value names the same unit" in text


def test_units_of_other_columns_are_refused_whatever_the_curator_says(tmp_path: Path, two: tuple[str, str]) -> None:
    other = dpnb.Session(
        pd.DataFrame({"patient": [1, 2], "age": [3, 4]}),
        privacy_unit="patient",
        max_rows_per_unit=1,
        budget=dpnb.Budget.gdp(1),
        schema={"age": dpnb.Bounded(0, 9)},
        ledger=tmp_path / "c.dpnb",
        name="other",
    )
    other.ledger.close()
    with pytest.raises(InvalidValueError, match=r"named by the same column.*'person'.*'patient'"):
        sum_of([two[0], other.ledger.path], same_unit=True)


@pytest.mark.parametrize("changes", [{"budget": None}, {"not_private_test_seed": 1}], ids=["no budget", "test noise"])
def test_a_ledger_without_a_guarantee_is_refused(tmp_path: Path, two: tuple[str, str], changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError, match="must have a guarantee that can be added"):
        sum_of([two[0], ledger(tmp_path / "c.dpnb", **changes)], same_unit=True)


# --- the same ledger --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["the file", "a copy", "an earlier state", "another continuation", "before a row"])
def test_a_state_of_the_same_ledger_is_refused(tmp_path: Path, state: str) -> None:
    path, copy = tmp_path / "a.dpnb", tmp_path / "copy.dpnb"
    ledger(path, *([] if state == "before a row" else [0.1]))
    if state != "the file":
        shutil.copy(path, copy)
    if state in ("an earlier state", "another continuation", "before a row"):
        ledger(path, 0.2)
    if state == "another continuation":
        ledger(copy, 0.15)
    pair = [str(path), str(path if state == "the file" else copy)]
    with pytest.raises(InvalidValueError, match=r"must be another ledger than .* a copy, a backup or an earlier state"):
        sum_of(pair, same_unit=True)


def test_ledgers_of_the_same_declaration_with_the_same_requests_are_two(tmp_path: Path) -> None:
    """The control: what is compared is no more than the first row."""
    pair = [ledger(tmp_path / name, 0.1, 0.2) for name in ("a.dpnb", "b.dpnb")]
    assert len(sum_of(pair, same_unit=True).ledgers) == 2


# --- when the budgets were set ----------------------------------------------------------------------------------------


def test_a_budget_set_after_answers_of_the_other_ledger_makes_a_reading(two: tuple[str, str]) -> None:
    for pair in (two, two[::-1]):
        found = sum_of(pair, same_unit=True)
        assert [(one.path, other.path) for one, other in found.late] == [two[::-1]]
        text = " ".join(sum_text(found).split())
        assert "a reading, and not a promise that was made beforehand" in text
        assert "is then the reading of an accumulator, and not a promise" in text
        assert "as the clocks of the machines had them" in text


def test_the_curator_may_say_that_they_were_set_beforehand(two: tuple[str, str]) -> None:
    text = " ".join(sum_text(sum_of(two, same_unit=True, set_beforehand=True)).split())
    assert "On that word the sum is a promise that was made beforehand; no row shows it." in text
    assert "accumulator" not in text


def test_rows_from_before_the_first_request_show_that_a_budget_was_set_beforehand(tmp_path: Path) -> None:
    second = ledger(tmp_path / "b.dpnb", frozen=True)
    first = ledger(tmp_path / "a.dpnb", 0.1)
    found = sum_of([first, second], same_unit=True)
    assert found.late == ()
    assert "No ledger had a request before the budget of each other one was in a row." in " ".join(
        sum_text(found).split()
    )


def test_a_budget_that_was_changed_counts_from_the_change(tmp_path: Path) -> None:
    path = tmp_path / "b.dpnb"
    budgets = [dpnb.Budget(epsilon=1, delta=1e-6), dpnb.Budget(epsilon=2, delta=1e-6)]
    for one in budgets:
        opened(path, budget=one).ledger.close()  # which writes a row for the second one
    first = ledger(tmp_path / "a.dpnb", 0.1)
    assert sum_of([first, str(path)], same_unit=True).late == ()
    opened(path, budget=budgets[0]).ledger.close()
    (late,) = sum_of([first, str(path)], same_unit=True).late
    assert late[0].path == str(path)


def test_a_ledger_without_rows_shows_no_time(tmp_path: Path) -> None:
    unused, used = ledger(tmp_path / "b.dpnb", budget=dpnb.Budget.gdp(1)), ledger(tmp_path / "a.dpnb", 0.1)
    found = sum_of([unused, used], same_unit=True)
    assert [one.path for one, _ in found.late] == [unused]
    assert "has no row that shows when it was set" in " ".join(sum_text(found).split())


def test_charges_that_a_ledger_lacks_are_named(tmp_path: Path, two: tuple[str, str]) -> None:
    session = opened(tmp_path / "a.dpnb")
    note_restored(session._core.account, 7, version="1")
    session.ledger.close()
    text = " ".join(sum_text(sum_of(two, same_unit=True)).split())
    assert f"{two[0]} was accepted as one that may be an older copy" in text


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command(two: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", *two]) == 2
    assert "--same-unit" in capsys.readouterr().err
    assert main(["report", *two, "--same-unit", "--analyst", "ana"]) == 2
    assert "of several ledgers has no --analyst" in capsys.readouterr().err
    assert main(["report", two[0], "--same-unit"]) == 2
    assert "of one ledger" in capsys.readouterr().err
    output = tmp_path / "sum.txt"
    assert main(["report", *two, "--same-unit", "--output", str(output)]) == 0
    assert capsys.readouterr().out == f"{output}: 2 ledgers\n"
    assert main(["report", *two, "--same-unit"]) == 0
    shown, stored = (text.splitlines() for text in (capsys.readouterr().out, output.read_text("utf-8")))
    assert [*shown[:2], *shown[3:]] == [*stored[:2], *stored[3:]]  # but for the time
    assert main(["report", *two, "--same-unit", "--output", str(tmp_path / "none" / "sum.txt")]) == 2
