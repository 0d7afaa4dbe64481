"""Releases of one session, and the answers of recorded ones.

`dpnb._core.execution` charges a release and answers it from rows; the answer is then computed from the ledger alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from time import time_ns
from typing import Any

from dpnb._compile import LinearQuery
from dpnb._compile.query_explanation import caption
from dpnb._core.accountant.accountant import Accountant
from dpnb._core.execution.executor import Executor
from dpnb._core.group_sources import GroupValues, measurement_ids
from dpnb._core.history.words import AnswerReader
from dpnb._core.pricing.estimation import EstimateReader, Squares
from dpnb._core.pricing.influence import released_coefficients, scores_query, squares_query
from dpnb._core.pricing.previews import preview_each, previews, warn_without_gain
from dpnb._core.pricing.pricer import QueryPricer, refuse_separate_shares
from dpnb._core.pricing.query_state import Released, batch_table_of, request_of
from dpnb._plan.identity import query_key
from dpnb._plan.measurements import (
    AnyView,
    BoundsView,
    Discovery,
    MomentsView,
    Proportions,
    SlopesView,
    TableOneView,
    is_regression,
)
from dpnb._plan.plan import Plan, describe_plan, in_words, with_once
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb._request import ALWAYS, Conditions, Release
from dpnb._target import Keys, Target, target_of
from dpnb.accounting.exact import decimal_down
from dpnb.accounting.losses import GDP
from dpnb.copying import NotCopyable
from dpnb.errors import PlanError, RequestError
from dpnb.ledger import Charge
from dpnb.progress import Stage, at, work
from dpnb.results.answer import Answer
from dpnb.results.bounds import BoundsAnswer
from dpnb.results.estimates.expected import requested_in_rank
from dpnb.results.estimates.linear import RegressionNumbers
from dpnb.results.estimates.noisy import Cells, IntervalArrays
from dpnb.results.estimates.outputs import TableLayout, dates_of
from dpnb.results.preview import Amounts, Preview, Previews
from dpnb.results.regression import RegressionAnswer
from dpnb.results.table_one import TableOne
from dpnb.results.tables.index import replaced

# --- releases of one session ------------------------------------------------------------------------------------------


SOME_EXCLUDED = (
    "about the units that could still pay for it: each has its own budget, and some may be excluded; which and how "
    "many is private"
)


class ReleasePipeline(NotCopyable):
    """Releases of one session.

    `notice` is a warning if answers are not real or not private.
    """

    def __init__(self, pricer: QueryPricer, reader: AnswerReader, executor: Executor, notice: str | None) -> None:
        self.pricer, self.reader, self.executor, self.notice = pricer, reader, executor, notice
        self._number = time_ns()  # of the session; one for each, also in other processes, as far as that matters

    @property
    def account(self) -> Accountant:
        """The accountant that charges the releases."""
        return self.pricer.account

    @property
    def version(self) -> str:
        """Version of the tables."""
        return self.pricer.version

    # --- releasing ----------------------------------------------------------------------------------------------

    def release(self, request: Release, conditions: Conditions = ALWAYS) -> Answer:
        """Answer a query and charge the additional loss; the identical request returns the recorded answer, free."""
        with work(Stage.CHARGING):
            (charge,) = self.executor.run(request, conditions)
            with at(Stage.WRITING):
                return self.answer_of(charge)

    # --- answers ------------------------------------------------------------------------------------------------

    def unanswered(self, plan: Plan, view: AnyView) -> list[Target]:
        """Targets of a query that were charged but not answered; repeating each answers it, free."""
        account, version = self.pricer.account, self.pricer.version
        charges = account.ledger.unanswered(version, account.root_node, query_key(plan))
        requests = [request for charge in charges if isinstance(request := request_of(charge), Release)]
        return [one.target for one in requests if (one.plan, one.view) == (plan, view)]

    def total_loss(self, plan: Plan) -> GDP:
        """The total loss of a query with all its observations."""
        query = self.pricer.tables.compile(plan)
        return self.pricer.refinement(query).known_loss(query.l2_sensitivity_squared)

    def best(self, plan: Plan, view: AnyView) -> Answer | None:
        """All observations of a query, combined, at 95%; the latest one if units may have been excluded from all."""
        query = self.pricer.tables.compile(plan)
        charges = self.pricer.observations(plan, view)
        if not charges and self.account.first_exclusion is not None:
            charges = self.pricer.all_observations(plan)[-1:]
        if not charges or isinstance(plan.aggregation, Discovery):
            return None
        refinement = self.pricer.combine(query, charges)
        total_loss = refinement.known_loss(query.l2_sensitivity_squared)
        request = Release(plan, view, target_of("share", 1))  # whose intervals are the default ones
        return self.answer_from(
            query, request, charges, cost=(GDP(0), 0.0), total_loss=total_loss, time=charges[-1].time
        )

    def answer_of(self, charge: Charge) -> Answer:
        """The answer of a released row of the ledger."""
        request = request_of(charge)
        query = self.pricer.tables.compile(request.plan)
        cost = charge.gdp, self.pricer.account.cost_fraction(charge.id)
        charges = self.reader.observations_of(charge)
        return self.answer_from(query, request, charges, cost=cost, total_loss=charge.total_loss, time=charge.time)

    def answer_from(
        self,
        query: LinearQuery,
        request: Released,
        charges: list[Charge],
        *,
        cost: tuple[GDP, float],
        total_loss: GDP,
        time: str,
    ) -> Answer:
        plan, view, unit = query.plan, request.view, self.pricer.tables.unit(query.plan.source)
        is_once = query.contribution_bounds.max_rows_per_group == 1
        reader = self.reader.estimates(query, request, charges)
        refinement, table = reader.refinement, reader.table
        sources = measurement_ids(query, refinement, charges, view)
        kind: type[Answer] = Answer
        simultaneous = request.target.simultaneous
        excluded = self._excluded(charges)
        more: dict[str, Any] = {}
        if isinstance(view, TableOneView):
            kind = TableOne
        elif isinstance(view, BoundsView):
            kind, simultaneous = BoundsAnswer, True
        elif isinstance(view, MomentsView | SlopesView) and is_regression(view) and not plan.group_by:
            kind = RegressionAnswer
            more = {"measured": partial(self.numbers_of, reader), "is_final": refinement.is_final}
        return kind(
            description=reader.description if not is_once else with_once(reader.description, plan),
            names=tuple([group.name for group in plan.group_by]) if table is None else (table.name,),
            keys=reader.keys if table is None else tuple((row,) for row in table.rows),
            outputs=reader.outputs if table is None else table.outputs,
            arrays=reader.arrays if table is None else table.arranged(reader.arrays),
            confidence=decimal_down(request.target.confidence),
            simultaneous=simultaneous,
            notice=self.notice,
            excluded=excluded,
            condition=reader.condition,
            uncounted=query.left_out.caption if unit.column is None else caption(query, unit, self.pricer.tables.units),
            worst_case=self.pricer.account.individual,
            measurement_ids=sources if table is None else [*sources] * len(table.rows),
            anytime_arrays=partial(_anytime_arrays, reader, table),
            **({} if excluded else self.intervals_of(reader, table)),
            group_values=() if table else GroupValues.of(query, view, unit, self._number),
            is_refined=len(refinement.observations) > 1,
            dates=dates_of(plan.aggregation, view, reader.schema),
            remarks=reader.remarks,  # a function, which is called when they are first shown
            plan=plan,
            view=view,
            cost=cost[0],
            cost_fraction=cost[1],
            total_loss=total_loss,
            n_observations=len(refinement.observations),
            requested_in_rank=None if request.target.kind != "within" else requested_in_rank(view, request.target),
            time=time,
            origin=_PipelineReference(self, query, request, charges),
            **more,
        )

    def sampling_charges(self, answer: Answer, target: Target) -> list[Charge]:
        """The rows of the measurement of an answer's sampling error, if it was made before; free."""
        origin = answer.origin
        if not isinstance(origin, _PipelineReference):  # never: it has just been read in this session
            raise TypeError(type(origin).__name__)
        return self.executor.find(origin.sampling_request(answer, target)[0])

    def numbers_of(self, reader: EstimateReader, squares: Squares | None = None) -> RegressionNumbers:
        """The released numbers of a regression, with the measured products of `scores_query`."""
        unit = self._unit_of(reader.query.plan)
        noun = None if unit.column is None else unit.noun
        found = reader.regression_numbers(self.account.sampled, noun, squares)
        return found if noun is None else replace(found, units=self.pricer.public.units)

    def _unit_of(self, plan: Plan) -> PrivacyUnit:
        return self.pricer.tables.unit(plan.source)

    def intervals_of(
        self, reader: EstimateReader, table: TableLayout | None, squares: Squares | None = None
    ) -> dict[str, Any]:
        """The population intervals of an answer; None without any."""
        sampled = self.pricer.account.sampled

        def arranged(find: Callable[..., IntervalArrays | None], **kind: bool) -> IntervalArrays | None:
            found = find(sampled, squares, **kind)
            return found if found is None or table is None else table.arranged(found)

        return {
            "population_arrays": partial(arranged, reader.population_arrays),
            "anytime_population_arrays": partial(arranged, reader.population_arrays, anytime=True),
            "tested_arrays": partial(arranged, reader.tested_arrays),
            "sampled": lambda: reader.sampled_as(sampled, squares, unit=self._unit_of(reader.query.plan).column),
        }

    def _excluded(self, charges: list[Charge]) -> str | None:
        """The units that an answer is about, if that may not be all: a function of the ledger alone."""
        first = self.pricer.account.first_exclusion
        return SOME_EXCLUDED if first is not None and any(charge.id >= first for charge in charges) else None


def _anytime_arrays(reader: EstimateReader, table: TableLayout | None) -> IntervalArrays:
    return reader.anytime_arrays if table is None else table.arranged(reader.anytime_arrays)


@dataclass(frozen=True, eq=False, repr=False)
class _PipelineReference(NotCopyable):
    """The reference from an answer to its session, which a copied answer does not have."""

    releases: ReleasePipeline
    query: LinearQuery
    request: Released
    charges: list[Charge]
    # the sums of squared influences on each number, if they were measured, with their noise scales and loss
    squares: tuple[Cells, Cells, GDP] | None = None

    @contextmanager
    def refining(self, answer: Answer, groups: object) -> Iterator[Keys]:
        plan, view = answer.plan, answer.view
        with self.releases.executor.refusals_of(
            lambda: describe_plan(plan, view), lambda words: in_words(words, plan, view)
        ):
            yield self.releases.pricer.tables.group_keys(answer.plan, groups)

    def refine(self, answer: Answer, target: Target) -> Answer:
        request = Release(answer.plan, answer.view, target)
        if target.kind != "within" and not self.releases.executor.find(request):  # what was answered before is free
            warn_without_gain(self.releases.pricer, answer.plan, answer.view, target)
        return self.with_population(self.releases.release(request))

    def preview(self, answer: Answer, amounts: Amounts, options: dict[str, Any]) -> Preview | Previews:
        pricer, plan, view = self.releases.pricer, answer.plan, answer.view
        return preview_each(
            pricer, plan, amounts, options, lambda targets: previews(pricer, plan, view, targets, self.releases.notice)
        )

    def population(self, answer: Answer, target: Target) -> Answer:
        """The same answer with population intervals, from squares of influences that are measured now."""
        releases = self.releases
        with releases.executor.refusals_of(lambda: f"population interval of the {answer.description}"):
            request, places = self.sampling_request(answer, target)
            measured = releases.release(request, Conditions(combined=True))
        reader = self._reader
        squares = measured.arrays.value, measured.arrays.noise_scale
        if places is not None:
            squares = reader.placed(squares, places)
        own = replace(self, squares=(squares[0], squares[1], measured.total_loss))
        return replaced(
            own.with_population(self.with_population(answer, -1)),
            cost=measured.cost,
            cost_fraction=measured.cost_fraction,
            time=measured.time,
        )

    @property
    def _reader(self) -> EstimateReader:
        return self.releases.reader.estimates(self.query, self.request, self.charges)

    def sampling_request(self, answer: Answer, target: Target) -> tuple[Release, list[int] | None]:
        """What measures the sampling error of an answer, and of which of its numbers; None for a regression."""
        tables, places = self.releases.pricer.tables, None
        if self.releases.account.sampled == 1:
            raise PlanError("population: a census has no sampling error; its noise intervals are those you need")
        known = tables.unit(answer.plan.source), tables.schema(answer.plan.source)
        if isinstance(answer, RegressionAnswer):
            if answer.numbers.unknown is not None:
                raise PlanError(
                    f"population: the coefficients are not known yet in the {answer.description}; refine the answer "
                    "first, as in answer.refine(share=0.1)"
                )
            coefficients = released_coefficients(self._reader.least_squares)
            plan, view = scores_query(self.query, answer.view, *known, coefficients)
        else:
            plan, view, places = squares_query(self.query, answer.view, *known, self._reader.part)
        if answer.excluded is not None:
            raise PlanError(f"population: is not offered where units may be excluded; got the {answer.description}")
        return Release(plan, view, target), places

    def with_population(self, answer: Answer, times: int = 1) -> Answer:
        """An answer with population intervals from the squares that were measured for it or for an earlier one.

        Their loss is added to that of the answer; or taken from it, which undoes an earlier addition.
        """
        origin = answer.origin
        if self.squares is None or not isinstance(origin, _PipelineReference):
            return answer
        value, scale, loss = self.squares
        reader = self.releases.reader.estimates(origin.query, origin.request, origin.charges)
        arrays = self.releases.intervals_of(reader, reader.table, (value, scale))
        if isinstance(answer, RegressionAnswer):
            arrays["measured"] = partial(self.releases.numbers_of, reader, (value, scale))
        total = GDP.from_mu_squared(answer.total_loss.mu_squared + times * loss.mu_squared)
        return replaced(answer, total_loss=total, origin=replace(origin, squares=self.squares), **arrays)

    def shares(self, answer: Answer) -> Answer:
        view = Proportions()
        if any(batch_table_of(charge) for charge in self.charges):
            raise RequestError(
                "proportions: a batch estimates all groups together, so their errors are not independent; release the "
                "shares as a separate query, as in .value_counts(normalize=True).release(share=0.01)"
            )
        refuse_separate_shares(view, self.releases.pricer.combine(self.query, self.charges))
        return self.releases.answer_from(
            self.query,
            Release(answer.plan, view, self.request.target),
            self.charges,
            cost=(answer.cost, answer.cost_fraction),
            total_loss=answer.total_loss,
            time=answer.time,
        )

    def past(self, answer: Answer) -> tuple[Answer, ...]:
        """The answer after each observation, computed from released values without reading a row."""
        return tuple(
            self.releases.answer_from(
                self.query,
                self.request,
                self.charges[:number],
                cost=(charge.gdp, self.releases.account.cost_fraction(charge.id)),
                total_loss=charge.total_loss,
                time=charge.time,
            )
            for number, charge in enumerate(self.charges, start=1)
        )
