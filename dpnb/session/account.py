"""The promise and how it stands: filter and odometer, rebuilt from the ledger and kept in step with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from dpnb.accounting.budget import Budget
from dpnb.accounting.exact import decimal_down, decimal_sqrt_down, decimal_up, from_text, to_text
from dpnb.accounting.losses import GDP
from dpnb.accounting.odometers import MixtureOdometer
from dpnb.accounting.promise import AnyFilter, Promise, promise
from dpnb.errors import BudgetExceeded, DpnbError, LedgerError
from dpnb.ledger import Ledger
from dpnb.session.comparison import Comparison
from dpnb.session.timeline import Timeline

ODOMETER_DELTA = Fraction(1, 10**6)
"""Chance that an odometer's statement is wrong, for a budget that names no delta."""


@dataclass(frozen=True)
class State:
    """Filter and odometer after the rows of the ledger up to number `seen`.

    One value, so that an interrupt never leaves the one a charge ahead of the other.
    """

    filter: AnyFilter
    odometer: MixtureOdometer
    seen: int = 0


class Account:
    """What a budget still allows, whichever kernel spent it.

    Parameters
    ----------
    path : str
        Of the ledger.
    budget : Budget
    about : mapping of str to str
        The rest of the promise: which table, unit and schema it is about.
    filter_ : str
        Which filter keeps the budget.
    public_size : int, optional
        A new ledger keeps it for the odometer that needs a public bound.

    Raises
    ------
    InvalidValueError
        The filter cannot keep such a budget.
    LedgerError
        The file was made for another promise, is no ledger, or cannot be used.
    """

    def __init__(
        self,
        path: str,
        budget: Budget,
        about: Mapping[str, str],
        filter_: str = "gdp",
        public_size: int | None = None,
    ) -> None:
        self.budget = budget
        made = promise(filter_, budget)
        pledge = {**about, "budget": json.dumps(budget.to_json()), "filter": filter_}
        self.ledger = Ledger(path, pledge, _settings(made, public_size))
        self._paid: dict[int, float] = {}
        try:
            self.promise, self._state, self._comparison = _restored(self.ledger, made)
            self._timeline = Timeline()
            self._timeline.note(self._comparison)
            self.sync()
        except BaseException:
            self.ledger.close()
            raise

    @property
    def filter(self) -> AnyFilter:
        """The filter as it stands now."""
        return self.sync().filter

    @property
    def odometer(self) -> MixtureOdometer:
        """The mixture odometer as it stands now."""
        return self.sync().odometer

    @property
    def comparison(self) -> Comparison:
        """What every filter and odometer makes of the same history, as it stands now; to be read at once."""
        with self.ledger.lock:
            for charge in self.ledger.charges(after=self._comparison.seen):
                self._comparison = self._comparison.after(charge.id, charge.loss)
                self._timeline.note(self._comparison)
            return self._comparison

    @property
    def timeline(self) -> Timeline:
        """How filter and odometers stood after each row of the ledger."""
        with self.ledger.lock:
            _ = self.comparison  # brings both up to date
            return self._timeline

    def sync(self) -> State:
        """Take in what any kernel has charged since we last looked."""
        with self.ledger.lock:
            for charge in self.ledger.charges(after=self._state.seen):
                before = self._state
                counted = self.promise.enters(charge.loss)
                self._paid[charge.id] = before.filter.share(counted)
                after = before.filter.step(counted)
                self._state = State(after, before.odometer.step(charge.loss), charge.id)
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
        if filter_.admits(self.promise.enters(loss)):
            return
        largest = self.largest(known)
        asked = GDP.from_squared(known.mu_squared + loss.mu_squared)
        paid = f", of which mu={known.mu!r} is paid already" if known.mu_squared else ""
        remedy = f"the largest that fits is mu={largest!r}, or share=1" if largest else "nothing is left"
        if loss.delta and filter_.admits(self.promise.enters(GDP.from_squared(loss.mu_squared))):
            remedy = "its mu fits, its delta does not"
        if loss.delta:
            left = decimal_down(self.budget.discovery_delta - filter_.spent.delta)
            remedy += f"; of discovery_delta {left!r} is left, and this takes {decimal_up(loss.delta)!r}"
        raise BudgetExceeded(
            f"{question}: {filter_.rule}; asked for mu={asked.mu!r}{paid}; {remedy}; "
            "nothing was charged and the session goes on"
        )

    def largest(self, known: GDP) -> float:
        """The largest mu that a question of which `known` is paid can still be known at, rounded down; 0 if none."""
        left = self.promise.left(self.filter)
        return decimal_sqrt_down(known.mu_squared + left.mu_squared) if left.mu_squared else 0.0

    def paid(self, charge_id: int) -> float:
        """The share of the whole budget that a row of the ledger took, rounded up."""
        self.sync()
        return self._paid[charge_id]


def _settings(made: Promise, public_size: int | None) -> dict[str, str]:
    """Computed figures, kept as first written: another version of a library may differ in the last digit."""
    slack = made.budget.discovery_delta
    delta = ODOMETER_DELTA if made.budget.delta is None else made.budget.delta - slack
    odometer = MixtureOdometer.tuned(made.mu0_squared, delta, slack_delta=slack)
    return {
        **made.to_json(),
        "odometer_gamma": odometer.gamma.hex(),
        "odometer_delta": to_text(odometer.delta),
        **({} if public_size is None else {"public_size": str(public_size)}),
    }


def _restored(ledger: Ledger, made: Promise) -> tuple[Promise, State, Comparison]:
    """Everything before the first row, with the parameters that the file was made with."""
    settings = ledger.settings
    try:
        kept = made.with_figures(settings)
        gamma = Fraction(float.fromhex(settings["odometer_gamma"]))
        slack = made.budget.discovery_delta
        odometer = MixtureOdometer(gamma, from_text(settings["odometer_delta"]), slack_delta=slack)
        size = int(settings["public_size"]) if "public_size" in settings else None
    except (KeyError, ValueError, DpnbError) as error:
        raise LedgerError(
            f"ledger {ledger.path!r}: its settings cannot be read ({type(error).__name__}); restore it from a copy"
        ) from None
    return kept, State(kept.start, odometer), Comparison.before_anything(kept, odometer, size)
