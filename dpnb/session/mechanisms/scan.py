"""A stream of questions against a threshold: the sparse vector technique, tied to a session.

The hidden noise lives in this process alone, under a token that the launch in the ledger names.  A kernel that knows
the token's noise can go on asking, also through a session that was made anew; any other can read what was answered.
"""

from __future__ import annotations

import math
import os
import secrets
import sys
import threading
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, NoReturn

from dpnb.accounting.exact import Number, exact, from_text, shown_up, to_text
from dpnb.accounting.intervals import fixed_radius
from dpnb.accounting.losses import GDP, Loss
from dpnb.answer.crossing import Crossing
from dpnb.answer.faces import cost_up
from dpnb.errors import InvalidValueError, MechanismClosed, PlanError, RequestError
from dpnb.interactive.above_threshold import AboveThreshold, Terms, from_lattice
from dpnb.interactive.gaussian_scan import GaussianScan, gaussian_margin
from dpnb.interactive.protocol import Charged, State
from dpnb.ledger import Charge, branch_of
from dpnb.ledger.charge import digest
from dpnb.mechanisms.randomness import Source
from dpnb.query.aggregations import Count, Plain, Sum, Units
from dpnb.query.guard import guarded
from dpnb.query.identity import question_of
from dpnb.query.linear import LinearQuery
from dpnb.query.own_settings import own_settings
from dpnb.query.plan import Plan, question_words
from dpnb.query.schema import whole_number
from dpnb.session import live
from dpnb.session.arguments import checked_amount
from dpnb.session.mechanisms.mechanism import Mechanism, own_question
from dpnb.session.questions import Questions
from dpnb.session.releases import Releases
from dpnb.session.stored import plan_of
from dpnb.session.tree import Launch
from dpnb.stages import Stage, at, work

FAILED = "the question failed before it was answered; nothing was released, and the mechanism can go on"
ALPHA = Fraction(1, 20)
"""What the intervals of values may miss."""

Core = AboveThreshold | GaussianScan


class _Hidden(NamedTuple):
    core: Core
    lock: threading.RLock


_hidden: dict[tuple[int, str], _Hidden] = {}
"""By process and token.  A forked process finds nothing: the same noise must not answer in two places."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_hidden.clear)


@dataclass(frozen=True)
class ScanTerms:
    """On what a stream of comparisons is launched.

    Parameters
    ----------
    threshold : Fraction
        In the answers' units.
    laplace : Terms or None
    loss : Loss
    questions : int or None
        Declared number, for Gaussian noise.
    """

    threshold: Fraction
    laplace: Terms | None
    loss: Loss
    questions: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The terms as the ledger keeps them, equal for equal ones."""
        stored: dict[str, Any] = {"threshold": to_text(self.threshold), "loss": self.loss.to_json()}
        if self.laplace is None:
            return {**stored, "noise": "gaussian", "questions": self.questions}
        one = self.laplace
        return {**stored, "noise": "laplace", "hits": one.hits, "counts only": one.monotone, "values": one.values}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> ScanTerms:
        """What `to_json` wrote."""
        threshold = from_text(stored["threshold"])
        if stored["noise"] == "gaussian":
            squared = from_text(stored["loss"]["mu_squared"])
            return cls(threshold, None, GDP.from_squared(squared), int(stored["questions"]))
        epsilon = from_text(stored["loss"]["epsilon"])
        terms = Terms(epsilon, int(stored["hits"]), bool(stored["counts only"]), bool(stored["values"]))
        return cls(threshold, terms, terms.loss)

    @property
    def gaussian(self) -> GDP:
        """The loss of Gaussian noise."""
        return GDP.from_squared(self.loss.parts[0])

    def begin(self, source: Source) -> Core:
        """Draw the hidden noise."""
        if self.laplace is None:
            return GaussianScan(self.gaussian, self.questions or 1, source=source)
        one = self.laplace
        return AboveThreshold(one.epsilon, one.hits, monotone=one.monotone, values=one.values, source=source)


def terms_from(
    threshold: Number,
    *,
    epsilon: Number | None,
    hits: int,
    counts_only: bool,
    values: bool,
    mu: Number | None,
    questions: int | None,
) -> ScanTerms:
    """The terms, checked.

    Raises
    ------
    RequestError
        Neither or both kinds of noise are asked for.
    InvalidValueError
        A number is out of its range.
    """
    line = checked_threshold(threshold)
    if (epsilon is None) == (mu is None) or (mu is None) != (questions is None):
        raise RequestError(
            "above_threshold: give epsilon= (Laplace noise, any number of questions up to so many hits), or mu= with "
            "questions= (Gaussian noise, a declared number of questions)"
        )
    for name, flag in (("counts_only", counts_only), ("values", values)):
        if not isinstance(flag, bool):
            raise InvalidValueError(f"{name}: must be True or False; got {flag!r}")
    if epsilon is not None:
        most = whole_number(hits)
        if most is None:
            raise InvalidValueError(f"hits: must be a whole number of at least 1; got {hits!r}")
        terms = Terms(checked_amount(epsilon, "epsilon"), most, counts_only, values)
        return ScanTerms(line, terms, terms.loss)
    declared = whole_number(questions)
    if declared is None or declared < 1:
        raise InvalidValueError(f"questions: must be a whole number of at least 1; got {questions!r}")
    return ScanTerms(line, None, GDP(checked_amount(mu or 0, "mu")), declared)


def drawn(terms: ScanTerms, source: Source) -> str:
    """Draw hidden noise for a launch, so that it is there before anybody can find the launch; the token of it."""
    token = secrets.token_hex(16)
    _hidden[_place(token)] = _Hidden(terms.begin(source), threading.RLock())
    return token


def discard(token: str) -> None:
    """Throw the noise of a token away."""
    _hidden.pop(_place(token), None)


def _place(token: str) -> tuple[int, str]:
    return os.getpid(), token


def checked_threshold(threshold: Number) -> Fraction:
    """A threshold that can be shown.

    Raises
    ------
    InvalidValueError
        It is no number, or beyond the range of doubles.
    """
    line = exact(threshold, name="threshold")
    if abs(line) > Fraction(sys.float_info.max):
        raise InvalidValueError("threshold: must be within the range of doubles; got a number beyond it")
    return line


def scan_terms(terms: ScanTerms) -> list[tuple[str, str]]:
    """What the terms mean, as facts."""
    if terms.laplace is None:
        declared = terms.questions or 1
        return [
            ("questions", f"{declared}, declared; every answer may come with its noisy value"),
            ("reliable", _reliable(gaussian_margin(terms.gaussian, declared, ALPHA), declared)),
        ]
    asked = 100
    far = float(terms.laplace.margin(asked, ALPHA))
    what = "counts" if terms.laplace.monotone else "counts and sums"
    return [
        ("questions", f"any number of {what}, until {_hits(terms.laplace.hits)} above; below costs nothing more"),
        ("values", "a noisy value with each hit" if terms.laplace.values else "none: release a hit to learn its value"),
        ("reliable", _reliable(far, asked)),
    ]


def _reliable(far: float, questions: int) -> str:
    return (
        f"all of {questions} answers are right with 95% if each is at least {shown_up(far, 3)} times what one unit can "
        "change away from the threshold (for a number of units that many; for a count of rows that many times the rows "
        "that count of a unit)"
    )


def _hits(most: int) -> str:
    return "one was" if most == 1 else f"{most} were"


class Scan(Mechanism):
    """Questions against a threshold; see :meth:`Session.above_threshold`.

    Parameters
    ----------
    launch : Launch
    questions : Questions
    releases : Releases
    """

    charged: ClassVar[Charged] = "at launch"

    def __init__(self, launch: Launch, questions: Questions, releases: Releases) -> None:
        super().__init__(launch, releases)
        self._questions = questions
        self._terms = ScanTerms.from_json(dict(launch.about["asked"]))
        self._branch = branch_of(launch.id)
        self._counted = (0, 0, 0)  # the last row that was counted, and how many answers and hits up to it
        self._key = _place(str(launch.about["token"]))

    @property
    def terms(self) -> str:  # type: ignore[override]
        """What is paid when, in a sentence."""
        line = f"Counts and sums against {float(self._terms.threshold):g}, paid for at launch"
        if self._terms.laplace is None:
            return f"{line} for {self._terms.questions} questions, with Gaussian noise."
        return f"{line}, until {_hits(self._terms.laplace.hits)} above; answers below cost nothing more."

    @property
    def answers(self) -> list[Crossing]:
        """What was answered so far, in any kernel; free."""
        return [self._crossing(row) for row in self._account.ledger.on_branch(self._branch)]

    @property
    def state(self) -> State:
        """``open``, ``used up``, ``closed`` or ``elsewhere``."""
        asked, hits = self._so_far()
        hidden = _hidden.get(self._key)
        most = self._terms.questions if self._terms.laplace is None else self._terms.laplace.hits
        if (asked if self._terms.laplace is None else hits) >= (most or 1) or (hidden and hidden.core.left == 0):
            return "used up"
        own = super().state
        return "elsewhere" if own == "open" and hidden is None else own

    def _so_far(self) -> tuple[int, int]:
        """How many questions were answered, and how many of them were above."""
        ledger = self._account.ledger
        with ledger.lock:
            for row in ledger.on_branch(self._branch, after=self._counted[0]):
                _, asked, hits = self._counted
                self._counted = row.id, asked + 1, hits + bool(row.said and row.said["above"])
            return self._counted[1:]

    @property
    def summary(self) -> str:
        """How it stands, in few words."""
        asked, hits = self._so_far()
        count = f"{asked} question{'s' if asked != 1 else ''}"
        of = f"{hits} above" if self._terms.laplace is None else f"{hits} of {self._terms.laplace.hits} hits"
        return f"{of}, {count}; {cost_up(self._terms.loss)}"

    def ask(self, query: Any, threshold: Number | None = None) -> Crossing:
        """Whether a count or sum is above the threshold; the same question again gives the same answer, free.

        Parameters
        ----------
        query : Query
            Of the session in which it was launched, with one number: a count, a number of units, or a sum.
        threshold : Number, optional
            In the answer's units; that of the launch if left out.

        Raises
        ------
        RequestError, PlanError
            It is no such question.
        MechanismClosed
            It is closed or used up, or its noise was drawn in another kernel.
        ExecutionError
            It failed; nothing was released.
        """
        plan, view = own_question(query, self._launch.branch, self._account.ledger)
        compiled = self._compiled(plan, view)
        line = self._terms.threshold if threshold is None else checked_threshold(threshold)
        try:
            with work(Stage.CHARGING):
                row = self._answered(plan, compiled, line)
        except MechanismClosed as error:
            self._releases.refused(question_words(plan, Plain()), error)
            raise
        self._releases.log.asked(row, live.asking_cell())
        self._releases.changed()
        return self._crossing(row)

    def _answered(self, plan: Plan, query: LinearQuery, line: Fraction) -> Charge:
        """The row of a question: found, or answered and written."""
        text, request, ledger = plan.to_json(), to_text(line), self._account.ledger
        key = digest([self._releases.version, self._branch, text, request])
        hidden = _hidden.get(self._key)
        if hidden is None:
            known = ledger.find(key)
            if known is None:
                self._refuse_ended()
            return known or self._gone()
        with hidden.lock:  # of two threads that ask the same the second must find the first one's answer
            known = ledger.find(key)
            if known is not None:
                return known
            self._refuse_ended()
            self._questions.tables.ready()
            said = {"threshold": request, **guarded(lambda: self._answer(hidden.core, query, line), FAILED)}
            with ledger.transaction():
                self._account.tree.refuse_ended(self._branch, self._releases.version)
                row = ledger.reserve(
                    key=key,
                    branch=self._branch,
                    version=self._releases.version,
                    question=question_of(plan),
                    plan=text,
                    request=request,
                    loss=GDP(0),
                    said=said,
                    cell=live.asking_cell(),
                )
            if hidden.core.left == 0:
                self._end()
        return row

    def _end(self) -> None:
        super()._end()
        _hidden.pop(self._key, None)

    def _gone(self) -> NoReturn:
        raise MechanismClosed(
            f"{self.name}: its hidden noise was drawn in another kernel, or is gone with it, and is never stored; what "
            "it answered stays free; nothing was charged; ask there, or launch another one under a new name"
        )

    def _refuse_ended(self) -> None:
        if self.state == "used up":
            raise MechanismClosed(
                f"{self.name}: is used up: {self.summary}; nothing was charged; launch another one under a new name, "
                "which costs anew"
            )
        self._account.tree.refuse_ended(self._branch, self._releases.version)

    def _compiled(self, plan: Plan, view: object) -> LinearQuery:
        if not isinstance(view, Plain) or not isinstance(plan.aggregation, Count | Units | Sum) or plan.by:
            raise PlanError(
                f"{question_words(plan, Plain())}: only one count, number of units or sum can be compared with a "
                "threshold; of groups ask each by itself, and whether a mean is above t as whether the sum of x - t is "
                "above 0"
            )
        if self._terms.laplace is not None and self._terms.laplace.monotone and isinstance(plan.aggregation, Sum):
            raise RequestError(
                f"{self.name}: was launched with counts_only=True, for questions that a unit can only make larger; got "
                f"the {plan.words}"
            )
        return self._questions.tables.compile(plan)

    @own_settings()
    def _answer(self, core: Core, query: LinearQuery, line: Fraction) -> dict[str, Any]:
        """Read the rows and compare: what is released, as the ledger keeps it."""
        (feature,) = query.features
        sensitivity = math.isqrt(query.l2_sensitivity_squared - 1) + 1  # of one number its length, rounded up
        unit = feature.unit
        with at(Stage.ADDING):
            total = int(self._questions.tables.opened.sums(query)[0])
        if isinstance(core, GaussianScan):
            reading = core.ask(total, sensitivity=sensitivity, threshold=line / unit)
            width = fixed_radius([reading.measurement.sigma], alpha=ALPHA) * float(unit)
            return {"above": reading.above, "value": to_text(reading.value * unit), "half width": width}
        hit = core.ask(total, sensitivity=sensitivity, threshold=line / unit)
        if hit.value is None:
            return {"above": hit.above}
        value = from_lattice(hit.value, sensitivity, line / unit) * unit
        width = float(core.terms.value_half_width(ALPHA) * sensitivity * unit)
        return {"above": True, "value": to_text(value), "half width": width}

    def _crossing(self, row: Charge) -> Crossing:
        said = row.said or {}
        value = said.get("value")
        return Crossing(
            question_words(plan_of(row), Plain()),
            float(from_text(said["threshold"])),
            bool(said["above"]),
            None if value is None else float(from_text(value)),
            said.get("half width"),
            float(1 - ALPHA),
            self._releases.notice,
        )
