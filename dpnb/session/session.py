"""A session: one table, one promise, questions whose budgets are chosen after the earlier answers.

The order of a release is fixed: compile and bound the question, let the filter admit its loss, write the charge to the
ledger, and only then read rows, draw noise, write the answer, show it.  A crash in between can waste budget; it can
never exceed it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec

from dpnb.accounting.budget import Budget
from dpnb.accounting.losses import GDP, Loss
from dpnb.accounting.odometers import MixtureOdometer
from dpnb.accounting.promise import AnyFilter
from dpnb.answer.answer import Answer
from dpnb.answer.estimate import error_factor, estimate
from dpnb.answer.preview import Preview
from dpnb.interactive.refinement import Refinement, first_tau
from dpnb.ledger import MEMORY, Charge, Ledger
from dpnb.mechanisms.calibration import sigma_for
from dpnb.mechanisms.gaussian import measure
from dpnb.mechanisms.randomness import NotPrivateSeededSource, Source, SystemSource
from dpnb.query.execute import execute
from dpnb.query.frame import Frame
from dpnb.query.guard import guarded
from dpnb.query.linear import LinearQuery, explain, linear_query
from dpnb.query.plan import Mean, Plan
from dpnb.query.prepare import prepare
from dpnb.query.schema import ColumnType, privacy_unit_from, schema_from
from dpnb.session import live, rehearsal, state
from dpnb.session.account import Account
from dpnb.session.arguments import (
    checked_budget,
    checked_name,
    checked_size,
    checked_version,
    ledger_path,
)
from dpnb.session.knowledge import Rows, known_rows, refinement_of, refuse_unknown
from dpnb.session.query import Query
from dpnb.session.target import Target, confidence_of, resolve

NOT_PRIVATE = "NOT PRIVATE: seeded test noise"

FAILED = (
    "the question failed after it was charged; the charge stands and nothing was released; "
    "asking with the same arguments takes up the same charge"
)


class Session:
    """A private table and the promise about it.

    Parameters
    ----------
    table : pandas.DataFrame
        Copied as far as the schema describes it; changing it later changes nothing here.
    name : str
        Of the table; letters, digits, ``.``, ``_`` and ``-``.
    budget : Budget
        The promise, over everything this ledger ever releases.
    schema : mapping of str to Bounded or Categories
        The columns that may be asked about.
    privacy_unit : str, optional
        The column that says whose a row is; left out, each row is a unit.
    max_rows_per_unit : int, optional
        How many rows of a unit count; required with `privacy_unit`.
    public_size : int, optional
        A public figure for the number of units, used to predict errors, never taken from the table.
    version : str
        Of the table; the curator changes it when the table changes.  Spending is kept, answers are not reused.
    ledger : str or path, optional
        The durable file of charges; by default ``<name>.dpnb`` in the working directory, beside the notebook.
    filter : str
        Which filter keeps the promise: ``"gdp"`` (Smith and Thakurta 2022; the default, and the one that answers most),
        ``"zcdp"``, ``"rdp"`` (Feldman and Zrnic 2021), ``"approx-dp"`` (Whitehouse et al. 2023), ``"rogers"`` or
        ``"basic"`` (Rogers et al. 2016).  All but the first need a budget in epsilon and delta; the last two count an
        epsilon for each answer, so that refining an answer costs more there than asking once.
    not_private_test_seed : int, optional
        Replaces the noise by a repeatable sequence.  Nothing is private then, and everything says so.

    Raises
    ------
    SchemaError, InvalidValueError
        An argument breaks a rule.
    LedgerError
        The ledger was made for another promise or is no ledger.
    """

    notice: str | None = None
    """Says loudly that answers are not real or not private; None for a real session."""

    def __init__(
        self,
        table: Any,
        *,
        name: str,
        budget: Budget,
        schema: Mapping[str, ColumnType],
        privacy_unit: str | None = None,
        max_rows_per_unit: int | None = None,
        public_size: int | None = None,
        version: str = "1",
        ledger: str | os.PathLike[str] | None = None,
        filter: str = "gdp",
        not_private_test_seed: int | None = None,
    ) -> None:
        self.name = checked_name(name)
        self.budget = checked_budget(budget)
        self.public_size = checked_size(public_size)
        self.version = checked_version(version)
        self._schema = schema_from(schema)
        self.privacy_unit = privacy_unit_from(privacy_unit, max_rows_per_unit, self._schema)
        self._source: Source = SystemSource()
        if not_private_test_seed is not None:
            self._source, self.notice = NotPrivateSeededSource(not_private_test_seed), NOT_PRIVATE
        path = ledger_path(ledger, self.name)
        self._prepared = prepare(table, self._schema, self.privacy_unit)
        self._account = Account(path, self.budget, self._about(), filter, self.public_size)
        self.id = _identity(self._account.ledger.path, id(self))
        live.used(self)

    def _about(self) -> dict[str, str]:
        """What the promise is about; a ledger serves no other."""
        return {
            "name": self.name,
            "schema": msgspec.json.encode(self._schema, order="deterministic").decode(),
            "privacy unit": msgspec.json.encode(self.privacy_unit).decode(),
            "noise": self.notice or "private",
        }

    @classmethod
    def rehearse(cls, table: object = None, **arguments: Any) -> Session:
        """The same session on mock data drawn from the schema alone, to write a notebook before the first charge.

        Takes the arguments of `Session`, so that one word turns a rehearsal into the real thing.  `table` and `ledger`
        are never touched: charges are kept in memory, and every answer and gauge says that it is not real.

        Raises
        ------
        SchemaError, InvalidValueError
            An argument breaks a rule.
        """
        del table
        schema = schema_from(arguments.get("schema"))
        unit = privacy_unit_from(arguments.get("privacy_unit"), arguments.get("max_rows_per_unit"), schema)
        mock = rehearsal.mock_table(schema, unit, checked_size(arguments.get("public_size")))
        return _Rehearsal(mock, **{**arguments, "ledger": MEMORY})

    # --- what it knows of itself -------------------------------------------------------------------------------

    @property
    def frame(self) -> Frame[Query]:
        """The private table, to be used like a pandas DataFrame."""
        return Frame(self._schema, lambda plan: Query(plan, self))

    @property
    def spent(self) -> Loss:
        """The loss charged so far, by every kernel that uses the ledger, in the kind in which the filter counts."""
        return self._account.filter.spent

    @property
    def headroom(self) -> float:
        """Share of the budget that is left, from 0 to 1, rounded down."""
        return self._account.filter.headroom

    @property
    def filter(self) -> AnyFilter:
        """The filter as it stands now."""
        return self._account.filter

    @property
    def odometer(self) -> MixtureOdometer:
        """The mixture odometer as it stands now; its parameters were fixed when the ledger was made."""
        return self._account.odometer

    @property
    def ledger(self) -> Ledger:
        """The list of charges."""
        return self._account.ledger

    @property
    def promise(self) -> str:
        """The promise in words."""
        return f"{self._account.promise.words}, for {self.privacy_unit.words}"

    def __repr__(self) -> str:
        return state.text(state.snapshot(self))

    def _repr_html_(self) -> str:
        return state.html(state.snapshot(self))

    # --- asking ------------------------------------------------------------------------------------------------

    def _preview(self, plan: Plan, target: Target) -> Preview:
        query = linear_query(plan, self._schema, self.privacy_unit)
        with self.ledger.lock:
            refinement = self._refinement(plan)
            total, rows = self._resolve(query, target, refinement)
            cost = refinement.missing(total)
            before, promise = self.filter, self._account.promise
        counted = promise.enters(cost)
        fits = before.admits(counted)
        factor = error_factor(query, rows.smallest if rows else None)
        error = None
        if not isinstance(plan.aggregation, Mean) or rows is not None:
            further = sigma_for(query.l2_sensitivity_squared, cost) if cost.mu_squared else None
            error = refinement.radius(target.alpha, further) * factor
        return Preview(
            plan=plan,
            target=total,
            cost=cost,
            cost_share=before.share(counted),
            confidence=float(target.confidence),
            expected_error=error,
            headroom_after=before.step(counted).headroom if fits else 0.0,
            fits=fits,
            largest=None if fits else self._account.largest(refinement.known),
            times=before.times(counted),
            contribution=explain(query, self.privacy_unit),
            refining=promise.refining,
            assumption=_assumption(plan, rows),
            notice=self.notice,
        )

    def _release(self, plan: Plan, target: Target) -> Answer:
        query = linear_query(plan, self._schema, self.privacy_unit)
        charge = self._charge(query, target)
        if charge.sigma is not None and charge.measurement is None:
            charge = self._answer_charge(query, charge, charge.sigma)
        live.used(self)
        return self._answer(query, charge)

    def _charge(self, query: LinearQuery, target: Target) -> Charge:
        """Find the request in the ledger, or admit and write its charge; durable when this returns."""
        plan, request = query.plan.to_json(), target.to_json()
        key = hashlib.sha256(json.dumps([self.version, plan, request]).encode()).hexdigest()
        with self.ledger.transaction():
            known = self.ledger.find(key)
            if known is not None:
                return known
            refinement = self._refinement(query.plan)
            looks = tuple(look.id for look in self.ledger.looks(self.version, plan))
            total, _ = self._resolve(query, target, refinement)
            loss = refinement.missing(total)
            sigma = tau = None
            if loss.mu_squared:
                self._account.admit(query.plan.words, loss, refinement.known)
                sigma = sigma_for(query.l2_sensitivity_squared, loss)
                tau = refinement.tau if refinement.looks else first_tau(sigma, target.alpha)
            charge = self.ledger.reserve(
                key=key,
                version=self.version,
                plan=plan,
                request=request,
                target=max(total, refinement.known, key=lambda known: known.mu_squared),
                loss=loss,
                sigma=sigma,
                tau=tau,
                looks=looks,
            )
        return charge

    def _answer_charge(self, query: LinearQuery, charge: Charge, sigma: float) -> Charge:
        """Read rows, draw noise, write the answer; what was charged and not answered before is taken up here."""
        try:
            measurement = guarded(
                lambda: measure(execute(query, self._prepared, self._schema), sigma=sigma, source=self._source), FAILED
            )
        except BaseException:
            self.ledger.fail(charge)
            live.used(self)
            raise
        return self.ledger.release(charge, measurement)

    def _best(self, plan: Plan) -> Answer | None:
        query = linear_query(plan, self._schema, self.privacy_unit)
        looks = self.ledger.looks(self.version, plan.to_json())
        if not looks:
            return None
        refinement = refinement_of(looks)
        confidence = Fraction(95, 100)
        return self._shape(query, refinement, confidence, (GDP(0), 0.0), refinement.known, looks[-1].time)

    def _answer(self, query: LinearQuery, charge: Charge) -> Answer:
        refinement = refinement_of(self.ledger.by_id(charge.looks))
        confidence = confidence_of(charge.request)
        cost = charge.loss, self._account.paid(charge.id)
        return self._shape(query, refinement, confidence, cost, charge.target, charge.time)

    def _shape(
        self,
        query: LinearQuery,
        refinement: Refinement,
        confidence: Fraction,
        cost: tuple[GDP, float],
        known: GDP,
        time: str,
    ) -> Answer:
        sums, sigma = refinement.combined()
        return Answer(
            plan=query.plan,
            keys=query.keys,
            cells=estimate(query, sums, sigma, refinement.radius(1 - confidence), self._schema),
            confidence=float(confidence),
            cost=cost[0],
            cost_share=cost[1],
            known=known,
            looks=len(refinement.looks),
            time=time,
            notice=self.notice,
            refine=Query(query.plan, self).release,
        )

    # --- what is known -----------------------------------------------------------------------------------------

    def _refinement(self, plan: Plan) -> Refinement:
        return refinement_of(self.ledger.looks(self.version, plan.to_json()))

    def _rows(self, query: LinearQuery) -> Rows | None:
        def known(plan: Plan) -> tuple[LinearQuery, Refinement]:
            return linear_query(plan, self._schema, self.privacy_unit), self._refinement(plan)

        return known_rows(query, self.public_size, known)

    def _resolve(self, query: LinearQuery, target: Target, refinement: Refinement) -> tuple[GDP, Rows | None]:
        rows = self._rows(query)
        if target.kind == "within" and rows is None and isinstance(query.plan.aggregation, Mean):
            refuse_unknown(query.plan)
        total = resolve(
            target,
            query=query,
            refinement=refinement,
            budget=self.budget,
            share_left=lambda share: self._account.promise.left(self.filter, share),
            error_factor=error_factor(query, rows.smallest if rows else None),
        )
        return total, rows


class _Rehearsal(Session):
    """A session on mock data."""

    notice = rehearsal.NOTICE


def _assumption(plan: Plan, rows: Rows | None) -> str | None:
    if rows is not None:
        return f"about {rows.smallest:,.0f} rows in the smallest group ({rows.source})"
    if isinstance(plan.aggregation, Mean):
        return "the number of rows, which no released count tells; the interval comes with the answer"
    return None


def _identity(path: str, number: int) -> str:
    """The same for every session on one file; a ledger in memory has one session."""
    text = f"{path}{number}" if path == MEMORY else str(Path(path).absolute())
    return hashlib.sha256(text.encode()).hexdigest()[:16]
