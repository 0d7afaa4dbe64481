"""The audit of a ledger: it finds each kind of wrong charge, in rows that are written past the filters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest

import dpnb
from dpnb.__main__ import main
from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.grant import Grant, Mode
from dpnb._core.accountant.granting import freeze, grant, move_cap, revoke, unfreeze
from dpnb.accounting.losses import GDP, PureDP, PureGDP, Repeated
from dpnb.curator.audit import audit
from dpnb.errors import LedgerError
from dpnb.ledger import Ledger, RequestOrigin, node_of, requested_by
from dpnb.ledger.charge import GRANT
from ledger.rows import REQUEST, tamper

HALF = PureGDP.of(Fraction(1, 2), Fraction(0), Fraction(0))
TENTH = PureGDP.of(Fraction(1, 10), Fraction(0), Fraction(0))


def opened(path: Path, **changes: object) -> dpnb.Session:
    options: dict[str, object] = {"budget": dpnb.Budget.gdp(1), **changes}
    return dpnb.Session(  # type: ignore[call-overload,no-any-return]
        pd.DataFrame({"who": [1, 2, 3], "x": [1, 2, 3]}),
        name="clinic",
        privacy_unit="who",
        max_rows_per_unit=1,
        schema={"x": dpnb.Bounded(0, 9)},
        ledger=path,
        **options,
    )


class Written:
    """A ledger with two parts, to which rows are written without asking a filter."""

    def __init__(self, session: dpnb.Session, mode: Mode) -> None:
        self.account: Accountant = session._core.account
        self.ledger: Ledger = session.ledger
        self.ana, self.bob = (grant(self.account, "analyst", name, mode, HALF, version="1") for name in ("ana", "bob"))
        self.mode = mode

    def charge(self, mu_squared: str, actor: str | None, part: Grant | None) -> None:
        node = node_of(part.id) if part is not None and self.mode == "reserved" else ""
        row = {"request": REQUEST, "table_version": "1", "query_key": "q", "sigma": 1e40}
        with self.ledger.transaction():
            key = f"{self.ledger.count}"
            loss = GDP.from_mu_squared(Fraction(mu_squared))
            if actor is None:
                self.ledger.reserve(request_key=key, node=node, loss=loss, **row)  # type: ignore[arg-type]
            else:
                with requested_by(RequestOrigin(actor)):
                    self.ledger.reserve(request_key=key, node=node, loss=loss, **row)  # type: ignore[arg-type]


@pytest.fixture(params=["reserved", "pooled"])
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Written]:
    session = opened(tmp_path / "clinic.dpnb")
    with closing(session.ledger):
        yield Written(session, request.param)


def problems(written: Written) -> list[str]:
    return list(audit(written.ledger.path).problems)


def fine(one: Written) -> None:
    one.charge("1/4", "ana", one.ana)
    one.charge("1/2", "bob", one.bob)
    one.charge("1/4", "ana", one.ana)
    freeze(one.account, "a pause", version="1")
    unfreeze(one.account, version="1")


def beyond_its_part(one: Written) -> None:
    one.charge("51/100", "ana", one.ana)


def beyond_a_lower_cap(one: Written) -> None:
    one.charge("1/5", "ana", one.ana)
    move_cap(one.account, one.ana, TENTH, version="1")
    one.charge("1/100", "ana", one.ana)


def while_frozen(one: Written) -> None:
    freeze(one.account, "an audit", version="1")
    one.charge("1/100", "ana", one.ana)


def after_revocation(one: Written) -> None:
    revoke(one.account, one.ana, version="1")
    one.charge("1/100", "ana", one.ana)


def by_a_local_session(one: Written) -> None:
    one.charge("1/100", None, None)


WRONG: dict[Callable[[Written], None], str] = {
    beyond_its_part: "takes analyst ana beyond its",
    beyond_a_lower_cap: "takes analyst ana beyond its cap in mu squared",
    while_frozen: "was charged while the table was frozen",
    after_revocation: "was charged after the part of ana was revoked",
    by_a_local_session: "was charged outside all parts of the budget, by a local session",
}


def test_honest_charges_are_fine(written: Written) -> None:
    fine(written)
    assert problems(written) == []
    sums = {one.name: (one.spent.mu_squared, one.requests) for one in audit(written.ledger.path).sums}
    assert sums == {
        "table": (1, 3),
        "analyst ana": (Fraction(1, 2), 2),
        "analyst bob": (Fraction(1, 2), 1),
    }


@pytest.mark.parametrize("wrong", WRONG, ids=lambda one: one.__name__)
def test_a_wrong_charge_is_found(wrong: Callable[[Written], None], written: Written) -> None:
    wrong(written)
    found = problems(written)
    assert len(found) == 1, found
    assert WRONG[wrong] in found[0]


def test_charges_to_the_part_of_another_are_found(tmp_path: Path) -> None:
    one = Written(opened(tmp_path / "clinic.dpnb"), "reserved")
    one.charge("1/100", "bob", one.ana)
    assert "was charged to the part of ana by bob" in problems(one)[0]


def test_ceilings_that_exceed_the_budget_are_found(tmp_path: Path) -> None:
    one = Written(opened(tmp_path / "clinic.dpnb"), "reserved")
    assert problems(one) == []
    with one.ledger.transaction():
        third = Grant(0, "analyst", "eve", "reserved", "", HALF, None, one.ana.parameters)
        one.ledger.reserve(
            kind=GRANT, request_key="eve", table_version="1", query_key="eve", loss=GDP(0), launch=third.to_details()
        )
    assert problems(one) == ["The ceilings in table add up to more than its own."]


@pytest.mark.parametrize(("share", "is_found"), [(1, False), (2, False), (0.999, True)])
def test_less_noise_than_was_paid_for_is_found(tmp_path: Path, share: float, is_found: bool) -> None:
    session = opened(tmp_path / "clinic.dpnb")
    session.frame["x"].sum().release(mu=0.1)
    (row,) = session.ledger.charges()
    with session.ledger.transaction():
        session.ledger.reserve(
            request_key="k",
            table_version="1",
            query_key="q",
            loss=row.loss,
            request=row.request,
            sigma=(row.sigma or 0) * share,
        )
    found = audit(session.ledger.path).problems
    assert found == (("Row 2 costs more than it was charged.",) if is_found else ())


def test_a_selection_with_a_larger_epsilon_than_was_paid_for_is_found(tmp_path: Path) -> None:
    session = opened(tmp_path / "clinic.dpnb", budget=dpnb.Budget.gdp(1))
    frame = session.frame
    frame.groupby(frame["x"] > 4).size().top(1).release(epsilon=0.1)
    (row,) = session.ledger.charges()
    with session.ledger.transaction():
        request = row.request.replace('"epsilon":"1/10"', '"epsilon":"1/2"')
        session.ledger.reserve(
            kind=row.kind, request_key="k", table_version="1", query_key="q", loss=row.loss, request=request
        )
    assert audit(session.ledger.path).problems == ("Row 2 costs more than it was charged.",)


def test_a_selection_that_is_charged_as_more_rounds_than_it_has_is_found(tmp_path: Path) -> None:
    session = opened(tmp_path / "clinic.dpnb", budget=dpnb.Budget.gdp(1))
    frame = session.frame
    frame.groupby(frame["x"] > 4).size().top(1).release(epsilon=0.1)
    (row,) = session.ledger.charges()
    with session.ledger.transaction():
        session.ledger.reserve(
            kind=row.kind,
            request_key="k",
            table_version="1",
            query_key="q",
            loss=Repeated(PureDP(0.01), 10),
            charged=row.charged,
            request=row.request,
        )
    assert audit(session.ledger.path).problems == ("Row 2 costs more than it was charged.",)


def test_a_budget_that_is_not_divided(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = opened(tmp_path / "clinic.dpnb")
    session.frame["x"].mean().release(share=1)
    assert main(["audit", session.ledger.path]) == 0
    assert "No problem found." in capsys.readouterr().out
    with session.ledger.transaction():
        session.ledger.reserve(
            request_key="k", table_version="1", query_key="q", loss=GDP("1/10"), request=REQUEST, sigma=1e40
        )
    assert main(["audit", session.ledger.path]) == 1
    assert "takes table beyond its budget in mu squared" in capsys.readouterr().out
    tamper(Path(session.ledger.path), "UPDATE events SET loss = '{}' WHERE id = 1")
    assert main(["audit", session.ledger.path]) == 2
    with pytest.raises(LedgerError):
        audit(str(tmp_path / "none.dpnb"))


def test_other_filters_and_individual_accounting_say_what_is_not_audited(tmp_path: Path) -> None:
    zcdp = opened(tmp_path / "z.dpnb", budget=dpnb.Budget(epsilon=1, delta=1e-6), filter="zcdp")
    zcdp.frame["x"].mean().release(share=0.5)
    each = opened(tmp_path / "i.dpnb", accounting="individual")
    for _ in range(3):
        each.frame["x"].sum().release(mu=0.9)
        each.frame["x"].mean().release(mu=0.9)
    for session in (zcdp, each):
        result = audit(session.ledger.path)
        assert result.is_fine, result.problems
        assert len(result.notes) == 1


def test_rows_whose_times_fall_are_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As earlier versions wrote them when the clock was set back; the control: this version never does."""
    times = iter(("2026-01-02", "2026-01-09", "2026-01-05", "2026-01-08", "2026-01-09"))
    notes = []
    for name in ("before", "now"):
        session = dpnb.Session(
            pd.DataFrame({"age": [40]}),
            name=name,
            budget=dpnb.Budget.gdp(1),
            schema={"age": dpnb.Bounded(0, 100)},
            ledger=tmp_path / name,
        )
        with monkeypatch.context() as patch:
            if name == "before":
                patch.setattr(Ledger, "time_in", lambda self, node="": f"{next(times)}T00:00:00.000Z")
            for tenth in range(1, 6):
                session.frame.count().release(mu=tenth / 100)
        session.ledger.close()
        result = audit(str(tmp_path / name))
        assert result.is_fine
        notes.append([one for one in result.notes if "clock" in one])
    assert [one.split(":")[0] for one in notes[0]] == [
        "The time of 2 rows, the first of which is row 3, is before that of an earlier row"
    ]
    assert notes[1] == []
