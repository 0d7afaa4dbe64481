"""A regression fitted step by step by noisy gradients."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from dpnb._core.accountant.tree import Launch
from dpnb._core.core import SessionCore
from dpnb._plan.measurements import AnyView, CoefficientsView, Gradient, ModelLoss, PlainView
from dpnb._plan.plan import Plan
from dpnb._plan.regression import LARGEST, describe_model, design
from dpnb._request import Conditions, DescendGradient, Release
from dpnb._target import Target, target_from
from dpnb.accounting.exact import display_up
from dpnb.accounting.losses import GDP, Loss
from dpnb.errors import BudgetExceeded, MechanismClosed, RequestError, printable
from dpnb.interactive.descent import (
    is_moving,
    is_plateau,
    mean_iterate,
    refuse_too_many,
    stepped,
    tail_length,
    tail_means,
)
from dpnb.interactive.mechanism import Charged, SessionMechanism
from dpnb.ledger import node_of
from dpnb.progress import Stage, work
from dpnb.render.numbers import number_with_interval
from dpnb.render.sessions import mechanism_html
from dpnb.results.answer import Answer
from dpnb.results.regression import MOVING, FitResult, to_original_units, without_intervals

CONFIDENCE = 0.95
"""Of coefficients, which have no intervals: it only has to be a level."""

STOPPED = "stopped: the checks no longer improve"
FINISHED = "all steps were taken"
EXHAUSTED = "ended: the budget allows no further step"
CLOSED = "ended: the mechanism was closed"


@dataclass(frozen=True)
class _DescentEvent:
    """A released step, or a released check of the prediction error."""

    after: int  # number of steps so far, including this one
    paid: GDP  # cost of all events since the launch, including this one
    sources: frozenset[tuple[int, int]]  # the measurements that it uses
    excluded: str | None  # description, if it may not be all units
    check: Answer | None  # None for a step, of which only the resulting coefficients are kept
    variance: float  # of the noise in each component of a step's sum of gradients


class GradientDescent(SessionMechanism):
    """A regression fitted by noisy gradient descent (Feldman and Zrnic 2021, Algorithms 6 and 7).

    Each step releases, in one charge, the sum over all units of their gradients at the coefficients of every chain,
    each unit's clipped to `clip_norm`, with Gaussian noise added once to the sum; it is divided by a public number of
    units.  With k chains each chain has sqrt(k) times the noise of a single chain, and their mean has the noise of a
    single chain.  Under individual accounting a step costs each unit the norm of its own gradients.

    Parameters
    ----------
    launch : Launch
    core : SessionCore

    Attributes
    ----------
    max_steps : int
        Maximum number of steps.
    stop_reason : str or None
        Why the last `run` ended, in words; None before the first.

    Examples
    --------
    >>> fit = df.fit("cost", on=["age"], family="linear", mu=0.05, steps=5, clip_norm=1.0)
    >>> fit.run().shape
    (2,)
    >>> fit.state
    'closed'
    """

    charged: ClassVar[Charged] = "step by step"
    cost_description: ClassVar[str] = (
        "A regression, fitted by noisy gradients. Each step is charged before it is taken, as is each check of the "
        "prediction error; stopping early saves the rest."
    )

    def __init__(self, launch: Launch, core: SessionCore) -> None:
        super().__init__(launch, core)
        one, resolved = launch.mechanism, launch.resolved
        if not isinstance(one, DescendGradient):  # never: its kind is that of a descent
            raise TypeError(launch.kind)
        self._scale = {"rate": resolved["learning_rate"], "size": resolved["public_size"]}
        self._one, self._rows, self._model = one, one.rows, one.model
        self._design = design(self._model, core.tables.schema(self._rows.source))
        self._view = CoefficientsView(one.terms, self._design.classes, one.chains)
        self._mu, self._check_mu, self.max_steps = one.mu, one.check_mu, one.steps
        start = np.tile(np.array(resolved["start"], np.float64), (one.chains, 1))
        self._iterates: list[NDArray[np.float64]] = [start]
        self._events: list[_DescentEvent] = []
        self._counted: set[int] = set()
        self._at = 0
        self._lock = threading.Lock()
        self.stop_reason: str | None = None

    # --- steps --------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Return to the start: after a relaunch, for example in a rerun notebook, the recorded steps are free."""
        self._at, self.stop_reason = 0, None

    def step(self) -> FitResult:
        """Take the next step, and the check after it if one is due; free if it was released before, in any kernel.

        Returns
        -------
        FitResult
            As `coefficients`.

        Raises
        ------
        BudgetExceeded
            The filter refuses; nothing was charged.
        RequestError
            All steps were taken.
        MechanismClosed
            The mechanism was closed before this step was taken.

        Examples
        --------
        >>> fit = df.fit("cost", on=["age"], family="linear", mu=0.05, steps=3, clip_norm=1.0)
        >>> fit.step().shape
        (2,)
        >>> fit.n_steps
        1
        """
        self._step()
        return self.coefficients

    def run(self) -> FitResult:
        """Take steps until the last one, or until the checks no longer improve, and close the mechanism.

        `stop_reason` says which.  A run is refused before its first step if all steps and checks that were not yet
        taken do not fit together into the budget; take single steps by `step` then, or launch a shorter descent.  Under
        individual accounting, where a step costs each unit what its own gradient needs, it is not; and where the budget
        is exhausted on the way, for example by another kernel, the mechanism stays open.  A repeated call, also in a
        later kernel, repeats the same steps at no cost and ends at the same one.

        Returns
        -------
        FitResult
            As `coefficients`.

        Raises
        ------
        BudgetExceeded
            The steps cost more than what is left; nothing was charged.
        MechanismClosed
            The mechanism was closed before its first step.

        Examples
        --------
        >>> fit = df.fit("cost", on=["age"], family="linear", mu=0.05, steps=3, clip_norm=1.0)
        >>> fit.run().shape
        (2,)
        """
        ended, self.stop_reason = None, None
        self._refuse_too_many()
        with work(Stage.CHARGING) as line:
            line.report(self._progress())
            try:
                while ended is None:
                    ended = self._advance()
                    line.report(self._progress())
                self.stop_reason = ended
            finally:
                line.report(self._progress())
            if ended in (FINISHED, STOPPED):
                self.close()
            return self.coefficients

    def _refuse_too_many(self) -> None:
        """Refuse all steps together before the first, if the budget is too small for those that were not yet taken."""
        self._sync()
        taken = self._steps_among(len(self._events))
        if self.state == "open" and taken < self.max_steps and not self._account.individual:
            terms = self._mu, self._check_mu, self._one.check_every, self.max_steps - taken
            refuse_too_many(self.name, self._account, *terms, taken=taken)

    def _advance(self) -> str | None:
        """Take one step; or, if there is none to take, return the reason."""
        checks = [_check_value(answer) for answer in self.model_losses.values()]
        if is_plateau(checks, self._one.patience):
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
        """Take a step and the check after it, and first the check of the last step if it was refused then."""
        if self._due(self._at) is None:
            raise RequestError(
                f"{self.name}: all {self.max_steps} steps were taken; to continue, launch another one under a new name "
                "with start= set to these coefficients"
            )
        is_check = self._is_check(self._at)
        self._release_next()
        if is_check and self._due(self._at) is not None:
            self._release_next()
        if self._is_check(self._at):
            self._release_next()

    def _release_next(self) -> None:
        """Take the next step or check, which is charged unless it was taken before."""
        due = self._due(self._at)
        if due is not None:
            answer = self._releases.release(Release(*due), Conditions(node_of(self.id)))
            self._record(self._at, answer)
            self._at += 1

    # --- order of steps and checks ------------------------------------------------------------------------------

    def _steps_among(self, events: int) -> int:
        """The number of steps among the first `events` events."""
        return self._events[events - 1].after if events else 0

    def _is_check(self, number: int) -> bool:
        """Whether the event of this index is a check."""
        every, n_steps = self._one.check_every, self._steps_among(number)
        return bool(every and number and n_steps % every == 0 and self._events[number - 1].check is None)

    def _due(self, number: int) -> tuple[Plan, AnyView, Target] | None:
        """The release that is the event of this index, given the earlier releases; None if there is none."""
        n_steps = self._steps_among(number)
        if self._is_check(number):
            at = tuple(mean_iterate(self._iterates[: n_steps + 1]).tolist())
            return self._of(ModelLoss(self._model, at)), PlainView(), target_from(mu=self._check_mu)
        if n_steps >= self.max_steps:
            return None
        at = tuple(tuple(chain) for chain in self._iterates[n_steps].tolist())
        clip = self._one.clip_norm
        return self._of(Gradient(self._model, at, clip)), self._view, target_from(mu=self._mu)

    def _of(self, aggregation: Gradient | ModelLoss) -> Plan:
        return msgspec.structs.replace(self._rows, aggregation=aggregation)

    def _record(self, number: int, answer: Answer) -> None:
        """Record the release of the event of this index."""
        with self._lock:
            if number != len(self._events):
                return  # already recorded
            check, n_steps = self._is_check(number), self._steps_among(number)
            paid = self._paid(number)
            row = max(row for row, _ in answer.measurement_ids[0])
            if row > self.id and row not in self._counted:  # not charged to an earlier fit
                paid = paid + answer.cost
                self._counted.add(row)
            if not check:
                before = self._iterates[n_steps]
                released = answer.arrays.value.reshape(before.shape)
                self._iterates.append(stepped(before, released, **self._scale, limit=LARGEST))
            event = _DescentEvent(
                n_steps + (not check),
                paid,
                answer.measurement_ids[0],
                answer.excluded,
                answer if check else None,
                float(answer.arrays.noise_scale.max()) ** 2,
            )
            self._events.append(event)

    def _sync(self) -> None:
        """Record the events that any kernel has released; charges and reads nothing."""
        while True:
            number = len(self._events)
            due = self._due(number)
            rows = [] if due is None else self._core.executor.find(Release(*due))
            if not rows or rows[0].status != "released":
                return
            self._record(number, self._releases.answer_of(rows[0]))

    # --- results ------------------------------------------------------------------------------------------------

    @property
    def n_steps(self) -> int:
        """Number of steps taken in this kernel since the launch or the last `begin`."""
        return self._steps_among(self._at)

    @property
    def coefficients(self) -> FitResult:
        """The coefficients so far, in the columns' original units: the mean over chains of their tail averages.

        They have no intervals: see `FitResult`.  For a logistic, Poisson or multinomial regression they are on the
        scale of the linear predictor; with several classes the mean over the classes is subtracted from each.  The
        first value of a category is its reference level.
        """
        layout, iterates = self._design, self._iterates[: self.n_steps + 1]
        values = to_original_units(self._model.family, layout, tail_means(iterates))
        events = self._events[: self._at]
        sources: frozenset[tuple[int, int]] = frozenset().union(*(event.sources for event in events))
        keys = tuple((key,) for key in layout.classes) or ((),)
        chains = f"{len(values)} chain{'s' if len(values) > 1 else ''}"
        variances = [event.variance for event in events if event.check is None]
        moving = is_moving(iterates, variances, **self._scale)
        notes = [f"after {self.n_steps} of {self.max_steps} steps, {chains}, for {self._scale['size']:,} units"]
        notes += [self.stop_reason] if self.stop_reason is not None else []
        last = tail_length(self.n_steps)
        notes += [MOVING.format(steps="step" if last == 1 else f"{last:,} steps")] if moving else []
        return FitResult(
            description=f"{describe_model(self._model)}{self._rows.scope_description}",
            names=("class",) if layout.classes else (),
            keys=keys,
            outputs=("term", self._view.terms),
            arrays=without_intervals(values),
            confidence=CONFIDENCE,
            notice=self._core.notice,
            excluded=next((event.excluded for event in events if event.excluded), None),
            measurement_ids=(sources,) * len(keys),
            notes=tuple(notes),
            is_moving=moving,
        )

    @property
    def model_losses(self) -> dict[int, Answer]:
        """The checks so far, by the number of steps before each: share of wrong predictions, or mean absolute error.

        Each is for the coefficients at that step; errors of numbers are relative to the outcome's range.
        """
        return {event.after: event.check for event in self._events[: self._at] if event.check is not None}

    @property
    def cost(self) -> Loss:
        """What its session has been charged for it so far, in any kernel."""
        self._sync()
        return self._paid(len(self._events))

    def _paid(self, events: int) -> GDP:
        """The cost of the first `events` events."""
        return self._events[events - 1].paid if events else GDP(0)

    # --- display ------------------------------------------------------------------------------------------------

    @property
    def summary(self) -> str:
        """The current status, in few words."""
        self._sync()
        return f"{describe_model(self._model)}{self._rows.scope_description}: {self._status(len(self._events))}"

    def _status(self, events: int) -> str:
        """The status after the first `events` events."""
        paid = self._paid(events)
        suffix = " in the worst case" if self._account.individual else ""
        cost = f"{self._format_cost(paid)}{suffix}" if paid else "nothing charged"
        parts = [f"step {self._steps_among(events)} of {self.max_steps}", cost]
        last = next((event.check for event in self._events[:events][::-1] if event.check is not None), None)
        if last is not None:
            value, low, high = (float(ends[0, 0]) for ends in (last.arrays.value, last.arrays.low, last.arrays.high))
            text, interval = number_with_interval(value, low, high)
            parts.append(f"last check {text} ({interval})")
        return ", ".join(parts)

    def _progress(self) -> str:
        ended = "" if self.stop_reason is None else f"; {self.stop_reason}"
        return f"{printable(self.name)}: {self._status(self._at)}{ended}"

    def __str__(self) -> str:
        ended = "" if self.stop_reason is None else f"; {self.stop_reason}"
        price = f"mu {display_up(GDP(self._mu).mu)} for each step"
        head = f"<{self.kind} {self.name!r}, {self.state}: {self.summary}{ended}; {price}, charged {self.charged}>"
        return head if not self.n_steps else f"{head}\n{self.coefficients!r}"

    def _repr_html_(self) -> str:
        return mechanism_html(self._to_dict(), self.coefficients._repr_html_() if self.n_steps else "")


def _check_value(answer: Answer) -> tuple[float, float]:
    """The value of a check and its noise scale."""
    return float(answer.arrays.value[0, 0]), float(answer.arrays.noise_scale[0, 0])
