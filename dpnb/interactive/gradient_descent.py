"""A regression fitted by noisy gradients, step by step."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from html import escape
from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from dpnb._core.accountant.tree import Launch
from dpnb._core.core import SessionCore
from dpnb._core.pricing.target import Target, target_from
from dpnb._plan.measurements import AnyView, CoefficientsView, Gradient, ModelLoss, PlainView, RegressionModel
from dpnb._plan.plan import Plan
from dpnb._plan.regression import LARGEST, describe_model, design
from dpnb.accounting.exact import display_up, from_text
from dpnb.accounting.losses import GDP, Loss
from dpnb.errors import BudgetExceeded, MechanismClosed, RequestError, printable
from dpnb.interactive.descent_steps import is_plateau, mean_iterate, stepped, tail_means
from dpnb.interactive.mechanism import SessionMechanism
from dpnb.interactive.protocol import Charged
from dpnb.ledger import node_of
from dpnb.progress import Stage, work
from dpnb.render.numbers import format_cost_up, number_with_interval
from dpnb.render.page import STYLE, with_timestamp
from dpnb.results.answer import Answer
from dpnb.results.fit import FitResult, in_own_units, is_noisy, over_chains

CONFIDENCE = 0.95

STOPPED = "stopped: no check got better"
FINISHED = "all steps were taken"
EXHAUSTED = "ended: the budget allows no more"
CLOSED = "ended: it was closed"


@dataclass(frozen=True)
class _DescentEvent:
    """A step, or a check of how badly the coefficients predict, as it was released.

    Parameters
    ----------
    after : int
        Steps up to then, its own included.
    paid : GDP
        What all events up to this one have cost since the launch.
    sources : frozenset of (int, int)
        The measurements that it rests on.
    about : str or None
        Whom it is about, if that may not be everybody.
    check : Answer or None
        None for a step, of which nothing more is kept than where it led.
    """

    after: int
    paid: GDP
    sources: frozenset[tuple[int, int]]
    about: str | None
    check: Answer | None


class GradientDescent(SessionMechanism):
    """A regression that is fitted by steps against noisy gradients (Feldman and Zrnic 2021, Algorithms 6 and 7).

    Each step releases, in one charge, the sum over all units of their gradients at the coefficients of every chain,
    each unit's scaled down to the clip, with Gaussian noise added once to the sum; it is divided by a public number of
    units.  With chains every chain has the square root of their number times the noise of one, and their mean has the
    noise of one.  Under individual accounting a step costs each unit the norm of its own gradients.

    Parameters
    ----------
    launch : Launch
    core : SessionCore
    """

    charged: ClassVar[Charged] = "step by step"
    cost_description: ClassVar[str] = (
        "A regression, fitted by noisy gradients. Each step is charged before it is taken, and so is each check of how "
        "well it predicts; stopping early saves the rest."
    )

    def __init__(self, launch: Launch, core: SessionCore) -> None:
        super().__init__(launch, core)
        asked = launch.details["arguments"]
        self._rows = Plan.from_json(asked["rows"])
        self._model = msgspec.convert(asked["model"], RegressionModel)
        self._design = design(self._model, core.tables.schema(self._rows.source))
        self._view = CoefficientsView(tuple(asked["terms"]), self._design.classes, asked["chains"])
        self._mu = from_text(asked["mu"])
        self._check_mu = None if asked["check_mu"] is None else from_text(asked["check_mu"])
        self.max_steps = int(asked["steps"])
        """How many steps it has at most."""
        start = np.tile(np.array(launch.details["resolved"]["start"], np.float64), (asked["chains"], 1))
        self._iterates: list[NDArray[np.float64]] = [start]
        self._events: list[_DescentEvent] = []
        self._counted: set[int] = set()
        self._at = 0
        self._lock = threading.Lock()
        self.stop_reason: str | None = None
        """Why the last `run` came to its end, in words; None before one."""

    # --- asking -------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Go back to the start: launched again, it gives its steps again, free, as in a notebook that is rerun."""
        self._at, self.stop_reason = 0, None

    def step(self) -> FitResult:
        """Take the next step, and the check that follows it if one is due; free if it was taken before, in any kernel.

        Returns
        -------
        Fitted
            As `coefficients`.

        Raises
        ------
        BudgetExceeded
            The filter refuses; nothing was charged.
        RequestError
            All steps were taken.
        MechanismClosed
            It was closed, and the step never taken.
        """
        self._step()
        return self.coefficients

    def run(self) -> FitResult:
        """Take steps to the end, until no check gets better, or until the budget allows no more; `ended` says which.

        After the last step, and where no check got better, it is closed; where the budget ended it stays open.  Asked
        again, also in a later kernel, it gives the same steps free and ends at the same one.

        Returns
        -------
        Fitted
            As `coefficients`.

        Raises
        ------
        BudgetExceeded
            The filter refuses even the first step.
        MechanismClosed
            It was closed before its first step.
        """
        ended, self.stop_reason = None, None
        with work(Stage.CHARGING) as line:
            line.say(self._progress())
            try:
                while ended is None:
                    ended = self._go_on()
                    line.say(self._progress())
                self.stop_reason = ended
            finally:
                line.say(self._progress())
            if ended in (FINISHED, STOPPED):
                self.close()
            return self.coefficients

    def _go_on(self) -> str | None:
        """Take one step; or, where there is none to take, say why."""
        checks = [_misfit(answer) for answer in self.model_losses.values()]
        if is_plateau(checks, self._launch.details["arguments"]["patience"]):
            return STOPPED
        if self._due(self._at) is None:
            return FINISHED
        try:
            self._step()
        except (BudgetExceeded, MechanismClosed) as error:
            if not self._at:
                raise
            return EXHAUSTED if isinstance(error, BudgetExceeded) else CLOSED
        return None

    def _step(self) -> None:
        """Pass a step with what belongs to it, and before it the check of the last one if that was refused then."""
        if self._due(self._at) is None:
            raise RequestError(
                f"{self.name}: has taken all of its {self.max_steps} steps; launch another one under a new name, with "
                "start= these coefficients"
            )
        is_check = self._is_check(self._at)
        self._pass()
        if is_check and self._due(self._at) is not None:
            self._pass()
        if self._is_check(self._at):
            self._pass()

    def _pass(self) -> None:
        """Take the next step or check, which is charged unless it was before."""
        due = self._due(self._at)
        if due is not None:
            answer = self._releases.release(*due, inside=node_of(self.id))
            self._note(self._at, answer)
            self._at += 1

    # --- what comes when ----------------------------------------------------------------------------------------

    def _taken(self, events: int) -> int:
        """Steps among the first so many events."""
        return self._events[events - 1].after if events else 0

    def _is_check(self, number: int) -> bool:
        """Whether the event of a number is a check."""
        every, taken = self._launch.details["arguments"]["check_every"], self._taken(number)
        return bool(every and number and taken % every == 0 and self._events[number - 1].check is None)

    def _due(self, number: int) -> tuple[Plan, AnyView, Target] | None:
        """What is released as the event of a number, by what was released before; None if there is none."""
        taken = self._taken(number)
        if self._is_check(number):
            at = tuple(mean_iterate(self._iterates[: taken + 1]).tolist())
            return self._of(ModelLoss(self._model, at)), PlainView(), target_from(mu=self._check_mu)
        if taken >= self.max_steps:
            return None
        at = tuple(tuple(chain) for chain in self._iterates[taken].tolist())
        clip = self._launch.details["arguments"]["clip_norm"]
        return self._of(Gradient(self._model, at, clip)), self._view, target_from(mu=self._mu)

    def _of(self, aggregation: Gradient | ModelLoss) -> Plan:
        return msgspec.structs.replace(self._rows, aggregation=aggregation)

    def _note(self, number: int, answer: Answer) -> None:
        """Keep what was released as the event of a number."""
        with self._lock:
            if number != len(self._events):
                return  # it is known already
            check, taken = self._is_check(number), self._taken(number)
            paid = self._paid(number)
            row = max(row for row, _ in answer.measurement_ids[0])
            if row > self.id and row not in self._counted:  # what another fit paid before, this one does not
                paid = paid + answer.cost
                self._counted.add(row)
            if not check:
                resolved, before = self._launch.details["resolved"], self._iterates[taken]
                released = answer.arrays.value.reshape(before.shape)
                rate, size = resolved["learning_rate"], resolved["public_size"]
                self._iterates.append(stepped(before, released, rate=rate, size=size, most=LARGEST))
            event = _DescentEvent(
                taken + (not check), paid, answer.measurement_ids[0], answer.population, answer if check else None
            )
            self._events.append(event)

    def _follow(self) -> None:
        """Take in what any kernel has released of it; charges and reads nothing."""
        while True:
            number = len(self._events)
            due = self._due(number)
            charge = None if due is None else self._releases.find_request(*due)
            if charge is None or (charge.sigma is not None and charge.measurement is None):
                return
            self._note(number, self._releases.answer_of(charge))

    # --- what is known ------------------------------------------------------------------------------------------

    @property
    def n_steps(self) -> int:
        """Steps taken in this kernel since it was launched or begun anew."""
        return self._taken(self._at)

    @property
    def coefficients(self) -> FitResult:
        """The coefficients so far, in the columns' own units: the mean over chains of each one's second half of steps.

        The intervals (95%, Student's t over the chains) cover the noise, against what the same descent would give
        without noise; not sampling, clipping, or what more steps would change.  With one chain there are none (NaN).
        For a logistic, Poisson or multinomial regression they are on the scale of the linear predictor; of several
        classes each is less its mean over the classes.  The coefficient of a value of a category is against its first.
        """
        made, size = self._design, self._launch.details["resolved"]["public_size"]
        ends = tail_means(self._iterates[: self.n_steps + 1])
        values = in_own_units(self._model.family, made, ends)
        passed = self._events[: self._at]
        sources: frozenset[tuple[int, int]] = frozenset().union(*(event.sources for event in passed))
        keys = tuple((key,) for key in made.classes) or ((),)
        chains = f"{len(values)} chain{'s' if len(values) > 1 else ''}"
        said = [f"after {self.n_steps} of {self.max_steps} steps, {chains}, for {size:,} units"]
        return FitResult(
            description=f"{describe_model(self._model)}{self._rows.scope_description}",
            names=("class",) if made.classes else (),
            keys=keys,
            outputs=("term", self._view.terms),
            arrays=over_chains(values, CONFIDENCE),
            confidence=CONFIDENCE,
            notice=self._core.notice,
            population=next((event.about for event in passed if event.about), None),
            measurement_ids=(sources,) * len(keys),
            notes=tuple(said if self.stop_reason is None else [*said, self.stop_reason]),
            is_noisy=is_noisy(self._model.family, made, ends, CONFIDENCE),
        )

    @property
    def model_losses(self) -> dict[int, Answer]:
        """The checks so far, by the number of steps before each: the share of wrong predictions, or the mean distance.

        Of the coefficients as they were then; distances of numbers are shares of the outcome's range.
        """
        return {event.after: event.check for event in self._events[: self._at] if event.check is not None}

    @property
    def cost(self) -> Loss:
        """What its session has paid for it so far, whichever kernel asked."""
        self._follow()
        return self._paid(len(self._events))

    def _paid(self, events: int) -> GDP:
        """What the first so many events have cost."""
        return self._events[events - 1].paid if events else GDP(0)

    # --- faces --------------------------------------------------------------------------------------------------

    @property
    def summary(self) -> str:
        """How it stands, in few words."""
        self._follow()
        return f"{describe_model(self._model)}{self._rows.scope_description}: {self._stand(len(self._events))}"

    def _stand(self, events: int) -> str:
        """How it stood after so many events."""
        paid = self._paid(events)
        most = " in the worst case" if self._account.individual else ""
        cost = f"{format_cost_up(paid)}{most}" if paid else "nothing paid"
        parts = [f"step {self._taken(events)} of {self.max_steps}", cost]
        last = next((event.check for event in self._events[:events][::-1] if event.check is not None), None)
        if last is not None:
            value, low, high = (float(ends[0, 0]) for ends in (last.arrays.value, last.arrays.low, last.arrays.high))
            text, interval = number_with_interval(value, low, high)
            parts.append(f"last check {text} ({interval})")
        return ", ".join(parts)

    def _progress(self) -> str:
        ended = "" if self.stop_reason is None else f"; {self.stop_reason}"
        return f"{printable(self.name)}: {self._stand(self._at)}{ended}"

    def __str__(self) -> str:
        ended = "" if self.stop_reason is None else f"; {self.stop_reason}"
        price = f"mu {display_up(GDP(self._mu).mu)} a step"
        head = f"<{self.kind} {self.name!r}, {self.state}: {self.summary}{ended}; {price}, charged {self.charged}>"
        return head if not self.n_steps else f"{head}\n{self.coefficients!r}"

    def _repr_html_(self) -> str:
        head = (
            f'<div style="{STYLE}"><b>{escape(self.name)}</b> ({escape(self.kind)}, {escape(self.state)}): '
            f"{escape(self.summary)}<div>{escape(self.cost_description)}</div></div>"
        )
        return with_timestamp(head + (self.coefficients._repr_html_() if self.n_steps else ""))


def _misfit(answer: Answer) -> tuple[float, float]:
    """A check's value and its noise scale."""
    return float(answer.arrays.value[0, 0]), float(answer.arrays.noise_scale[0, 0])
