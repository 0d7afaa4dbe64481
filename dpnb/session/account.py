"""The promise and how it stands: filter and odometer, rebuilt from the ledger and kept in step with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from dpnb.accounting.budget import Budget
from dpnb.accounting.exact import decimal_sqrt_down, decimal_up, from_text, to_text
from dpnb.accounting.filters import GDPFilter
from dpnb.accounting.losses import GDP
from dpnb.accounting.odometers import MixtureOdometer
from dpnb.errors import BudgetExceeded, LedgerError
from dpnb.ledger import Charge, Ledger

ODOMETER_DELTA = Fraction(1, 10**6)
"""Chance that an odometer's statement is wrong, for a budget that names no delta."""


@dataclass(frozen=True)
class State:
    """Filter and odometer after the rows of the ledger up to number `seen`.

    One value, so that an interrupt never leaves the one a charge ahead of the other.
    """

    filter: GDPFilter
    odometer: MixtureOdometer
    seen: int = 0

    def after(self, charge: Charge) -> State:
        """The state after the next row."""
        return State(self.filter.step(charge.loss), self.odometer.step(charge.loss), charge.id)


class Account:
    """What a budget still allows, whichever kernel spent it.

    Parameters
    ----------
    path : str
        Of the ledger.
    budget : Budget
    about : mapping of str to str
        The rest of the promise: which table, unit and schema it is about.

    Raises
    ------
    LedgerError
        The file was made for another promise, is no ledger, or cannot be used.
    """

    def __init__(self, path: str, budget: Budget, about: Mapping[str, str]) -> None:
        self.budget = budget
        promise = {**about, "budget": json.dumps(budget.to_json()), "filter": "gdp"}
        self.ledger = Ledger(path, promise, _settings(budget))
        try:
            self._state = _restored(self.ledger)
            self.sync()
        except BaseException:
            self.ledger.close()
            raise

    @property
    def filter(self) -> GDPFilter:
        """The filter as it stands now."""
        return self.sync().filter

    @property
    def odometer(self) -> MixtureOdometer:
        """The mixture odometer as it stands now."""
        return self.sync().odometer

    def sync(self) -> State:
        """Take in what any kernel has charged since we last looked."""
        with self.ledger.lock:
            for charge in self.ledger.charges(after=self._state.seen):
                self._state = self._state.after(charge)
            return self._state

    def admit(self, question: str, loss: GDP, known: GDP) -> None:
        """Let the filter decide; call inside the ledger's transaction, before the charge is written.

        Parameters
        ----------
        question : str
            In words, for the refusal.
        loss : GDP
            What the answer would add.
        known : GDP
            What was paid for this question already.

        Raises
        ------
        BudgetExceeded
            It does not fit; the message names the largest target that does.
        """
        filter_ = self.filter
        if filter_.admits(loss):
            return
        left = filter_.affordable()
        asked = GDP.from_squared(known.mu_squared + loss.mu_squared)
        paid = f", of which mu={known.mu!r} is paid already" if known.mu_squared else ""
        fits = decimal_sqrt_down(known.mu_squared + left.mu_squared)
        remedy = f"the largest that fits is mu={fits!r}, or share=1" if left.mu_squared else "nothing is left"
        raise BudgetExceeded(
            f"{question}: the filter keeps the sum of mu^2 within {filter_.budget.mu:.6g}^2; asked for "
            f"mu={asked.mu!r}{paid}; {remedy}; nothing was charged and the session goes on"
        )

    def share(self, cost: GDP) -> float:
        """A cost as a share of the whole budget, rounded up."""
        return decimal_up(cost.mu_squared / self._state.filter.budget.mu_squared)


def _settings(budget: Budget) -> dict[str, str]:
    """Computed figures, kept as first written: another version of a library may differ in the last digit."""
    odometer = MixtureOdometer.tuned(budget.loss.mu_squared, budget.delta or ODOMETER_DELTA)
    return {
        "mu0_squared": to_text(budget.loss.mu_squared),
        "odometer_gamma": odometer.gamma.hex(),
        "odometer_delta": to_text(odometer.delta),
    }


def _restored(ledger: Ledger) -> State:
    """The state before the first row, with the parameters that the file was made with."""
    settings = ledger.settings
    try:
        budget = GDP.from_squared(from_text(settings["mu0_squared"]))
        gamma = Fraction(float.fromhex(settings["odometer_gamma"]))
        return State(GDPFilter.from_loss(budget), MixtureOdometer(gamma, from_text(settings["odometer_delta"])))
    except (KeyError, ValueError) as error:
        raise LedgerError(
            f"ledger {ledger.path!r}: its settings cannot be read ({type(error).__name__}); restore it from a copy"
        ) from None
