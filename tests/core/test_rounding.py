"""The direction in which each displayed number is rounded: the rows of docs/explanation/rounding.md, one test each."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.accounting.conversions import rho_from_epsilon
from dpnb.accounting.exact import exact
from dpnb.accounting.guarantee import FILTERS, make_guarantee
from dpnb.accounting.losses import GDP
from dpnb.accounting.odometers import MixtureOdometer
from dpnb.mechanisms.selection import threshold_for
from dpnb.render import numbers
from dpnb.results.preview import Preview
from dpnb.results.tables.intervals import ThresholdResult
from dpnb.session import gauges, snapshot

ROOT = Path(__file__).resolve().parents[2]
BUDGETS = [dpnb.Budget(1, 1e-6), dpnb.Budget("0.1", "1e-9"), dpnb.Budget("2.0000003", "0.000012345678")]
MU = Fraction(1, 30)  # has no short decimal: every rounding shows
NUMBER = r"([0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?)"


@pytest.fixture
def session(tmp_path: Path) -> dpnb.Session:
    return opened(tmp_path)


def opened(folder: Path, **changes: Any) -> dpnb.Session:
    table = pd.DataFrame({"x": np.arange(100.0) % 7, "g": ["a", "b"] * 50, "t": ["u", "v"] * 50})
    schema = {"x": dpnb.Bounded(0, 7), "g": dpnb.Categories(["a", "b"]), "t": dpnb.Text()}
    arguments = {"name": "rounded", "budget": BUDGETS[0], "schema": schema, "public_size": 100}
    return dpnb.Session(table, **{**arguments, "ledger": folder / "rounded.dpnb", **changes})


def figure(pattern: str, text: str) -> Fraction:
    """The number in a text."""
    found = re.search(pattern.replace("#", NUMBER), text)
    assert found is not None, f"{pattern} in {text}"
    return Fraction(found[1])


def slightly_above(shown: Fraction, truth: Fraction) -> bool:
    return truth <= shown < truth * Fraction(102, 100)


def slightly_below(shown: Fraction, truth: Fraction) -> bool:
    return truth * Fraction(98, 100) < shown <= truth


# --- the rows of the table -----------------------------------------------------------------------------------------


def guarantee(session: dpnb.Session) -> None:
    for budget in BUDGETS:
        assert budget.epsilon is not None
        assert budget.delta is not None
        for name in FILTERS:
            made = make_guarantee(name, budget)
            assert slightly_above(figure(r"\(#, ", made.words), budget.epsilon)
            assert slightly_above(figure(r", #\)", made.words), budget.delta)
        assert slightly_above(figure("as #-GDP", make_guarantee("gdp", budget).words) ** 2, budget.loss.mu_squared)
        rho = rho_from_epsilon(budget.epsilon, delta=budget.delta)
        assert slightly_above(figure("as #-zCDP", make_guarantee("zcdp", budget).words), exact(rho))
        for name, pattern, times in (
            ("rdp", "as #-RDP", 1),
            ("approx-dp", "V within #", 2),
            ("rogers", "K within #", 1),
        ):
            made = make_guarantee(name, budget)
            assert slightly_above(figure(pattern, made.words), times * made.initial_filter.budget.parts[0])
    assert figure("#-GDP", make_guarantee("gdp", dpnb.Budget.gdp("1.99999")).words) >= Fraction("1.99999")


def order(session: dpnb.Session) -> None:
    for budget in BUDGETS:
        made = make_guarantee("rdp", budget)
        assert slightly_below(figure("order #$", made.filter_guarantee), made.initial_filter.budget.orders[0])


def factor(session: dpnb.Session) -> None:
    text = " ".join(repr(session.explain()).split())
    assert exact(math.e) < figure("factor of at most #", text) < exact(math.e) * Fraction(101, 100)


def cost(session: dpnb.Session) -> None:
    answer = session.frame.count().release(mu=MU)
    texts = [repr(answer), answer._repr_html_(), repr(session.frame["x"].mean().preview(mu=MU))]
    texts += [f"mu {session.log['mu'].iloc[0]}", session._core.log.latest(1)[0].cost]
    for text in texts:
        assert slightly_above(figure("mu #", text), MU)
    loss = GDP.from_mu_squared(MU**2, Fraction(1, 3 * 10**8))
    assert slightly_above(figure("delta #", loss.words), loss.delta)


def cost_as_a_fraction_of_the_budget(session: dpnb.Session) -> None:
    answer = session.frame.count().release(mu=MU)
    share = MU**2 / BUDGETS[0].loss.mu_squared
    for text in (repr(answer), answer._repr_html_()):
        assert share * 100 <= figure("#% of the budget", text) < share * 100 + Fraction(1, 10)
    for double in (0.29, 0.2900000000000001, 0.07, 1e-9, 0.0099, 0.00990001, math.nextafter(0.57, 1), 0.1 + 0.2):
        shown = Fraction(numbers.format_percent_up(double).removesuffix("%"))
        assert exact(double) * 100 <= shown < exact(double) * 100 + Fraction(1, 10 if double > 0.0099 else 100)


def total_loss(session: dpnb.Session) -> None:
    answer = session.frame.count().release(mu=MU)
    assert slightly_above(exact(numbers.format_mu_up(answer.total_loss)), MU)
    assert slightly_above(figure("mu #", repr(answer.history)), MU)


def spent(session: dpnb.Session) -> None:
    session.frame.count().release(mu=MU)
    assert slightly_above(figure("mu # of", snapshot.snapshot(session).spent_loss), MU)
    share = 100 * MU**2 / BUDGETS[0].loss.mu_squared
    assert share <= figure("#% spent", snapshot.snapshot(session).spent) < share + Fraction(1, 10)
    assert snapshot.snapshot(session).timeline.points[-1].spent >= MU**2 / BUDGETS[0].loss.mu_squared
    # All of it, of a budget that no text of 17 digits is: still rounded up.
    for budget in BUDGETS:
        for name in ("zcdp", "approx-dp", "gdp", "rdp"):
            made = make_guarantee(name, budget)
            full = made.initial_filter.step(made.to_filter_loss(made.remaining(made.initial_filter)))
            text = gauges.describe_spent(full, budget)
            shown = figure("(?:mu|rho|V) #", text)
            if name == "gdp":
                assert shown**2 >= budget.loss.mu_squared, text
            else:
                assert shown >= full.spent.parts[0] * (2 if name == "approx-dp" else 1), (name, text)
    assert gauges.of_budget("mu", 0.33333333333333337, 0.3333333333333333) == "mu 0.3334, all of it"


def total_budget(session: dpnb.Session) -> None:
    session.frame.count().release(mu=MU)
    whole = BUDGETS[0].loss.mu_squared
    assert slightly_below(figure("of #", snapshot.snapshot(session).spent_loss) ** 2, whole)
    with pytest.raises(dpnb.errors.BudgetExceeded) as refused:
        session.frame.count().release(mu=3)
    assert slightly_below(figure(r"within #\^2", str(refused.value)) ** 2, whole)


def remaining(session: dpnb.Session) -> None:
    preview = session.frame.count().preview(mu=MU)
    session.frame.count().release(mu=MU)
    truth = 1 - MU**2 / BUDGETS[0].loss.mu_squared
    assert truth - Fraction(1, 10**6) < exact(session.headroom) <= truth
    assert len(repr(session.headroom)) <= len("0.123456")
    assert isinstance(preview, Preview)
    html = session._repr_html_()
    assert html is not None
    for text in (repr(preview).partition("headroom after")[2], str(session), html):
        assert truth * 100 - Fraction(1, 10) < figure("#%", text) <= truth * 100
    with pytest.raises(dpnb.errors.BudgetExceeded) as refused:
        session.filter.step(GDP(3))
    assert truth * 100 - Fraction(1, 10) < figure("remaining is #% of the budget", str(refused.value)) <= truth * 100
    assert figure(r"of the budget \(mu=#", str(refused.value)) ** 2 <= BUDGETS[0].loss.mu_squared - MU**2
    with pytest.raises(dpnb.errors.BudgetExceeded) as refused:
        session.frame["x"].sum().release(mu=3)
    assert slightly_below(figure("fits is mu=#", str(refused.value)) ** 2, BUDGETS[0].loss.mu_squared - MU**2)
    for double in (0.29, math.nextafter(0.573, 0), 0.999, 1.0, 1e-9):
        shown = Fraction(numbers.format_percent_down(double).removesuffix("%"))
        assert exact(double) * 100 - Fraction(1, 10) < shown <= exact(double) * 100


def affordable(session: dpnb.Session) -> None:
    session.frame.count().release(mu=MU)
    left = BUDGETS[0].loss.mu_squared - MU**2
    preview = session.frame["x"].sum().preview(mu=3)
    assert isinstance(preview, Preview)
    assert preview.max_mu is not None
    assert slightly_below(exact(preview.max_mu) ** 2, left)
    assert slightly_below(figure("largest that fits: +mu #", repr(preview)) ** 2, left)
    several = session.frame["x"].sum().preview(mu=MU)
    assert figure("affordable: +# times", repr(several)) == left // MU**2


def odometer(session: dpnb.Session) -> None:
    session.frame.count().release(mu=MU)
    bound = exact(session.odometer.bound)
    assert slightly_above(figure("at most #,", session.odometer.statement()), bound)
    for name, line in session._core.account.compared().odometers.items():
        if math.isfinite(line.bound) and line.bound:
            assert slightly_above(figure("(?:at most|at least) (?:mu |rho )?#", line.statement()), exact(line.bound)), (
                name
            )


def end_of_an_odometer_scale(session: dpnb.Session) -> None:
    for budget in (*BUDGETS, dpnb.Budget(Fraction(1, 3), 1e-6)):
        other = opened(Path(session.ledger.path).parent / "other", budget=budget, ledger=":memory:")
        told, odometer = snapshot.snapshot(other), other.odometer
        assert isinstance(odometer, MixtureOdometer)
        full = exact(odometer.step(budget.loss).bound)
        assert slightly_above(figure("^# when", str(told.gauges[1].end)), full)
        assert slightly_above(exact(told.timeline.odometers.end), full)


def confidence(session: dpnb.Session) -> None:
    for level in (0.95, 0.999999, 0.9999999, 0.99999999, 2 / 3, 0.123456789):
        shown = figure("#%", numbers.percent(level))
        assert slightly_below(shown, exact(level) * 100)
        assert shown < 100
    text = session.odometer.statement() if session.spent else repr(session.frame.count().release(mu=MU))
    assert figure("#% noise interval", text) <= 95
    sure = session.frame.count().release(mu=MU, confidence=1 - Fraction(1, 10**20))  # next to 1 as a double
    assert figure("#% noise interval", repr(sure)) < 100


def interval(session: dpnb.Session) -> None:
    for value, low, high in ((10.0, 7.449, 12.551), (-3.0, -3.6449, -2.3551), (0.1, 0.0951, 0.1049), (1e9, 9e8, 11e8)):
        _, text = numbers.number_with_interval(value, low, high)
        shown_low, shown_high = (Fraction(end.replace(",", "")) for end in text.split(" to "))
        assert shown_low <= exact(low)
        assert shown_high >= exact(high)
    answer = session.frame["x"].sum().release(mu=MU)
    shown_low, shown_high = re.search(r"interval (\S+) to (\S+)", repr(answer)).groups()  # type: ignore[union-attr]
    low, high = answer.interval  # type: ignore[misc]
    assert float(shown_low.replace(",", "")) <= low < high <= float(shown_high.replace(",", ""))  # type: ignore[operator]


def half_width(session: dpnb.Session) -> None:
    for error in (0.1449, 144.9, 0.00995, 1.0, 14.0, 0.9949999):
        text = numbers.describe_error(np.array([[error]]), None, 0.95)
        assert slightly_above_by_a_digit(Fraction(text.split()[1].replace(",", "")), exact(error))
        result = ThresholdResult("count of rows", 3.0, True, 5.0, error, 0.95, None)
        assert slightly_above_by_a_digit(figure("± #", repr(result)), exact(error))


def slightly_above_by_a_digit(shown: Fraction, truth: Fraction) -> bool:
    return truth <= shown <= truth * Fraction(11, 10)


def shortfall(session: dpnb.Session) -> None:
    query = session.frame.groupby("g").size().top(1)
    for epsilon in ("0.0123", "0.000777", "0.1"):
        preview = query.preview(epsilon=epsilon)
        truth = exact(math.log(20)) / preview.loss.epsilon - 1  # of two groups: 1/alpha is 20
        shown = figure("at most # rows", " ".join(repr(preview).split()))
        assert truth <= exact(preview.shortfall) < truth + 1
        assert slightly_above_by_a_digit(shown, exact(preview.shortfall))
        assert figure("# rows at 95%", repr(query.preview(epsilon=[epsilon]))) >= exact(preview.shortfall)
    least = exact(query.preview(epsilon="0.0123").shortfall)
    assert figure("at most # rows", " ".join(repr(query.release(epsilon="0.0123")).split())) >= least >= 120


def estimate(session: dpnb.Session) -> None:
    for value, error, shown in ((10.46, 0.5, "10.46"), (10.449, 5.0, "10.4"), (-10.46, 5.0, "-10.5"), (7.0, 70.0, "7")):
        assert numbers.format_number(value, error) == shown


def discovery_threshold(session: dpnb.Session) -> None:
    other = opened(Path(session.ledger.path).parent, budget=dpnb.Budget(1, 1e-6, 1e-7), ledger=":memory:")
    preview = other.frame.discover("t").preview(mu="0.1")
    assert isinstance(preview, Preview)
    least = threshold_for(10.0, 1, Fraction(1, 10**8))  # a tenth of discovery_delta
    assert least <= figure("at least #", " ".join(repr(preview).split())) < least + 1


ROWS = [
    line.split("|")[1].strip()
    for line in (ROOT / "docs" / "explanation" / "rounding.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith(("| number", "|--"))
]


@pytest.mark.parametrize("row", ROWS)
def test_numbers_are_rounded_in_the_direction_that_the_table_says(row: str, session: dpnb.Session) -> None:
    check: Callable[[dpnb.Session], None] = globals()[
        {"order of a Rényi guarantee": "order"}.get(row, re.sub(r"\W+", "_", row))
    ]
    check(session)


def test_control_rounding_to_the_nearest_is_noticed(session: dpnb.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def nearest(x: float, digits: int = 4) -> str:
        return f"{x:.{digits}g}"

    for module in [module for name, module in sys.modules.items() if name.startswith("dpnb.")]:
        for name in {"display_up", "display_down"} & vars(module).keys():
            monkeypatch.setattr(module, name, nearest)
    for check in (guarantee, cost, total_loss, spent, end_of_an_odometer_scale):
        with pytest.raises(AssertionError):
            check(session)
