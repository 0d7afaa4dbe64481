"""Many rows of the ledger counted at once: the same as one after the other."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpnb
from dpnb._core.accountant.filters_and_odometers import EPSILON_ODOMETERS, ChargeBatch, FilterComparison, partition_cost
from dpnb.accounting.budget import Budget
from dpnb.accounting.convert import convert
from dpnb.accounting.exact import decimal_up, exact
from dpnb.accounting.guarantee import FILTERS, make_guarantee
from dpnb.accounting.losses import GDP, ZCDP, Loss
from dpnb.accounting.odometers import MixtureOdometer
from dpnb.accounting.partition_cost import NO_PARTS
from dpnb.errors import BudgetExceeded, ConversionError
from dpnb.ledger import ChargeSummary
from dpnb.session import snapshot

MUS = st.sampled_from(["0", "0.01", "0.05", "0.1", "1/3", "0.7", "3"])


def fresh(name: str, *, individual: bool = False) -> FilterComparison:
    own = make_guarantee(name, Budget(epsilon=8, delta=1e-6), individual=individual)
    return FilterComparison.initial(own, MixtureOdometer(Fraction(1, 10), Fraction(1, 10**6)), 1000)


def row(number: int, loss: Loss) -> ChargeSummary:
    return ChargeSummary(number, "release", "", "1", loss, None, None)


def admitted(comparison: FilterComparison, losses: list[GDP]) -> list[GDP]:
    """The losses without those that the enforced filter refuses: a ledger has no row for them."""
    found = []
    for loss in losses:
        with suppress(BudgetExceeded):
            comparison, _ = comparison.after(row(1, loss))
            found.append(loss)
    return found


def one_by_one(comparison: FilterComparison, losses: list[GDP], first: int = 1) -> FilterComparison:
    for number, loss in enumerate(losses, start=first):
        comparison, _ = comparison.after(row(number, loss))
    return comparison


@pytest.mark.parametrize("individual", [False, True], ids=["worst-case", "individual"])
@pytest.mark.parametrize("name", FILTERS)
@settings(max_examples=15, deadline=None)
@given(before=st.lists(MUS, max_size=3), mus=st.lists(MUS, min_size=1, max_size=30))
def test_a_run_is_counted_as_its_rows_one_after_the_other(
    name: str, individual: bool, before: list[str], mus: list[str]
) -> None:
    if individual and name not in ("gdp", "zcdp"):
        return
    start = fresh(name, individual=individual)
    start = one_by_one(start, admitted(start, [GDP(mu) for mu in before]))
    losses = admitted(start, [GDP(mu) for mu in mus])
    if not losses:
        return
    rows = [row(number, loss) for number, loss in enumerate(losses, start=len(before) + 1)]
    assert start.after_batch(ChargeBatch(rows)) == one_by_one(start, losses, len(before) + 1)


def test_filter_that_refuses_within_a_run_stays_at_the_row_that_it_refused() -> None:
    start = fresh("gdp")
    losses = [GDP("0.1")] * 20_000
    told = start.after_batch(ChargeBatch([row(number, loss) for number, loss in enumerate(losses, start=1)])).states
    assert {name for name, standing in told.items() if standing.refused_at} == set(FILTERS)
    for standing in told.values():
        fits = standing.guarantee.initial_filter.max_repetitions(standing.guarantee.to_filter_loss(losses[0]))
        assert standing.refused_at == fits + 1


def test_odometer_that_could_not_count_an_earlier_row_stays_away() -> None:
    start = one_by_one(fresh("zcdp"), [ZCDP("0.01")])  # type: ignore[list-item]  # of a sub-session
    after = start.after_batch(ChargeBatch([row(2, GDP("0.1"))]))
    assert "gdp-accumulator" not in after.odometers
    assert after == start.after(row(2, GDP("0.1")))[0]


# --- a ledger ---------------------------------------------------------------------------------------------------------

TABLE = pd.DataFrame({"x": range(60), "g": ["a", "b", "c"] * 20})
OPENED = {
    "gdp": {"budget": dpnb.Budget(epsilon=2, delta=1e-6, discovery_delta=1e-7)},
    "reserve": {"budget": dpnb.Budget.gdp("0.8", pure_epsilon="0.5")},
    "zcdp": {"budget": dpnb.Budget(epsilon=2, delta=1e-6), "filter": "zcdp"},
    "rdp": {"budget": dpnb.Budget(epsilon=2, delta=1e-6), "filter": "rdp"},
    "small": {"budget": dpnb.Budget(epsilon=1, delta=1e-6)},  # which filters other than "gdp" would have exceeded
    "none": {"budget": None},
    "individual": {"budget": dpnb.Budget.gdp(1), "accounting": "individual"},
}


def opened(name: str, path: Path) -> dpnb.Session:
    schema = {"x": dpnb.Bounded(0, 60), "g": dpnb.Categories(["a", "b", "c"])}
    return dpnb.Session(TABLE, name="history", schema=schema, public_size=60, ledger=path, **OPENED[name])


def live_through(session: dpnb.Session, look: Callable[[], object] = lambda: None) -> None:
    """Plain releases, parts of a partition, mechanisms in pure DP and a sub-session, as far as the session has them."""

    def ask(where: Any, times: int = 3) -> None:
        for number in range(times):
            where.frame[where.frame["x"] > number].count().release(mu=f"0.0{number + 1}")
            look()

    ask(session, 5)
    parts = session.partition("g", name="parts")
    for key in ("a", "b", "a"):
        ask(parts[key])
    parts.close()
    if not session._core.account.individual:
        if session._core.account.guarantee.filter_name in ("gdp", "none"):
            session.above_threshold(5, name="line", epsilon="0.1").close()
            session.frame.groupby("g").count().idxmax().release(epsilon="0.05")
            look()
        sub = session.delegate(dpnb.Budget.gdp("0.1"), name="colleague")
        sub.frame["x"].sum().release(mu="0.05")
        look()
        sub.close()
    ask(session, 6)


def stepped(session: dpnb.Session) -> tuple[dict[str, Any], dict[str, Any], list[float | None]]:
    """Filters, odometers and the shares of the budget, from one row of the ledger after another."""
    account = session._core.account
    start = FilterComparison.initial(account.guarantee, account.initial_odometer, account.public_size)
    filters = {name: (one.filter, NO_PARTS) for name, one in start.states.items()}
    odometers, parts = dict(start.odometers), {"gdp-accumulator": NO_PARTS, "others": NO_PARTS}
    refused: dict[str, int] = {}
    shares = [filters[start.enforced][0].headroom]
    for charge in account.ledger.summaries():
        path = account.tree.path(charge.node, "")
        if path is None:
            continue
        before = filters[start.enforced][0]
        for name, (filter_, sums) in filters.items():
            guarantee = start.states[name].guarantee
            if name not in refused:
                try:
                    own = name == start.enforced
                    loss = guarantee.recorded_loss(charge.loss, charge.charged if own else None)
                    sums, cost = partition_cost(filter_, sums, path, loss)
                    filters[name] = filter_.step(cost), sums
                except (BudgetExceeded, ConversionError):
                    refused[name] = charge.id
        after = filters[start.enforced][0]
        for name, odometer in list(odometers.items()):
            try:
                if account.individual:
                    odometers[name] = odometer.step(after.spent - before.spent)
                elif not path:
                    odometers[name] = odometer.step(start._counted(name, charge.loss))
                elif name in EPSILON_ODOMETERS:
                    del odometers[name]
                else:
                    kind = "gdp-accumulator" if name == "gdp-accumulator" else "others"
                    counted = convert(charge.loss, GDP if kind == "gdp-accumulator" else ZCDP)
                    sums, growth = parts[kind].after(path, counted.parts)
                    odometers[name] = odometer.step(counted.with_parts(growth))
                    later = [other for other in odometers if (other == "gdp-accumulator") == (kind != "others")]
                    if name == later[-1]:
                        parts[kind] = sums
            except ConversionError:
                del odometers[name]
        shares.append(after.headroom)
    return (
        {name: (filter_, refused.get(name)) for name, (filter_, _) in filters.items()},
        odometers,
        [None if math.isnan(share) else decimal_up(1 - exact(share)) for share in shares],
    )


@pytest.mark.parametrize("name", OPENED)
def test_one_pass_over_the_ledger_gives_what_stepping_through_it_gives(name: str, tmp_path: Path) -> None:
    session = opened(name, tmp_path / "history.dpnb")
    live_through(session, look=lambda: session._core.account.compared())
    filters, odometers, spent = stepped(session)
    for one in (session, opened(name, tmp_path / "history.dpnb")):  # counted after each row, and all rows at once
        account = one._core.account
        found = account.compared()
        assert {key: (state.filter, state.refused_at) for key, state in found.states.items()} == filters
        assert found.odometers == odometers
        assert (account.sync().filter, account.sync().odometer) == (filters[name_of(one)][0], odometers.get("mixture"))
        assert [point.spent for point in account.timeline()._points] == spent
        assert [point.spent for point in account.timeline(compared=True)._points] == spent
        assert account.accumulator == found.accumulator
    if name == "small":
        assert None in {refused for _, refused in filters.values()} != {None}


def name_of(session: dpnb.Session) -> str:
    return session._core.account.guarantee.filter_name


def test_filters_that_are_not_shown_are_not_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    initial = FilterComparison.initial

    def computed(*arguments: Any, everything: bool = True) -> FilterComparison:
        assert not everything
        return initial(*arguments, everything=everything)

    monkeypatch.setattr(FilterComparison, "initial", computed)
    session = opened("gdp", tmp_path / "history.dpnb")
    live_through(session, look=lambda: snapshot.snapshot(session))
    shown = snapshot.snapshot(session)
    assert [one.id for one in shown.filters] == ["gdp"]
    assert [one.id for one in shown.odometers] == [one.id for one in shown.timeline.curves] == ["mixture"]
    repr(session)
    session.explain()
    session.report()
    with pytest.raises(AssertionError):
        str(session)
