"""Reconciliation of earlier answers: weighted least squares over what was measured, at no cost.

The point estimates use every whole-table measurement of the answers' queries, weighted as if their noise scales had
been fixed beforehand; so tables of the same rows add up.  The intervals stay those of the answers: if what was
measured, and how precisely, depends on earlier answers, the weighted mean is not normal around the exact value, and
only the interval of each answer, which allows for that, is known to cover.

Two tables add up only if the same rows count in each: see `dpnb._compile.workload`.  No condition is added here, since
the answers are about the rows that they are about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpnb._compile.marginals import Floats, Levels, Marginals
from dpnb._compile.workload import complete_rows_of, levels_of, refuse_different_vectors, refuse_not_additive
from dpnb._core.pricing.query_state import ascending, batch_table_of, plan_of, request_of, rows_of_batch
from dpnb._core.releases import ReleasePipeline
from dpnb._plan.identity import query_key
from dpnb._plan.measurements import AnyView, BoundsView, Proportions
from dpnb._plan.plan import Plan
from dpnb.accounting.exact import shown
from dpnb.errors import PlanError, RequestError
from dpnb.ledger import Charge
from dpnb.ledger.charge import RELEASE
from dpnb.results.answer import Answer
from dpnb.results.batch import TableWithMargins
from dpnb.results.estimates import IntervalArrays, estimate
from dpnb.results.reconciled import ReconciledEstimates, Reconciliation


def reconcile(releases: ReleasePipeline, answers: Sequence[Answer] | None) -> Reconciliation:
    """Reconcile some answers of a session, or all of them that can be."""
    with releases.account.ledger.lock.checked():
        families: dict[str, list[Answer]] = {}
        for answer in _all_answers(releases) if answers is None else answers:
            try:
                families.setdefault(_family_of(releases, answer), []).append(answer)
            except (RequestError, PlanError):
                if answers is not None:
                    raise
        groups = [family for family in families.values() if len({query_key(answer.plan) for answer in family}) > 1]
        if answers is not None and len(families) > 1:
            one, other, *_ = (family[0].description for family in families.values())
            raise PlanError(
                f"reconcile: the answers must be of one statistic of the same rows; the {one} and the {other} are not, "
                "perhaps since rows without a value of a group column count in one of them only; filter both by "
                "df[df['x'].notna()], or plan them as a batch"
            )
        if not groups:
            raise RequestError(
                "reconcile: needs answers to at least two queries whose tables add up, for example by two columns and "
                "by one of them, of the same rows; session.plan([...]) releases such queries together"
            )
        done: dict[int, ReconciledEstimates] = {}
        for family in groups:
            done |= zip(map(id, family), _reconciled(releases, family), strict=True)
        ordered = [answer for family in groups for answer in family] if answers is None else answers
        return Reconciliation(tuple(done[id(answer)] for answer in ordered), releases.notice)


def _all_answers(releases: ReleasePipeline) -> list[Answer]:
    """The latest answer to every query and view of the session, for the current version of the tables."""
    latest: dict[tuple[Plan, AnyView], Charge] = {}
    for charge in releases.account.ledger.of_node(releases.account.root_node):
        if charge.kind == RELEASE and charge.table_version == releases.version and charge.status == "released":
            request = request_of(charge)
            latest[request.plan, request.view] = charge
    return [releases.answer_of(charge) for charge in latest.values() if _is_answered(releases, charge)]


def _is_answered(releases: ReleasePipeline, charge: Charge) -> bool:
    """Whether a row can be reconciled as far as its kind is concerned, so that its answer exists."""
    try:
        refuse_not_additive(plan_of(charge))
    except PlanError:
        return False
    table = batch_table_of(charge)
    return table is None or bool(rows_of_batch(releases.account.ledger, charge, table))


def _family_of(releases: ReleasePipeline, answer: object) -> str:
    """The statistic and the rows of an answer, equal for answers that add up."""
    if not isinstance(answer, Answer) or getattr(answer.origin, "releases", None) is not releases:
        if isinstance(answer, TableWithMargins):
            raise RequestError(
                "reconcile: takes answers of queries; got a table with margins; give the answers in its .batch, as in "
                "session.reconcile(table.batch)"
            )
        other = answer.description if isinstance(answer, Answer) else shown(answer)
        raise RequestError(
            f"reconcile: takes answers of this session; got {other}; release the query again, since a copied answer "
            "has no session"
        )
    plan = answer.plan
    refuse_not_additive(plan)
    if isinstance(answer.view, Proportions | BoundsView):
        raise RequestError(f"reconcile: {answer.description} has shares of one total; reconcile the counts instead")
    rows = releases.pricer.observations(plan)
    if any(request_of(row).target.groups for row in rows):
        raise RequestError(
            f"reconcile: some groups of the {answer.description} were refined separately, so its noise differs between "
            "groups; refine the whole query, or leave it out"
        )
    if not rows:
        raise RequestError(f"reconcile: {answer.description} has no observation that can be combined; leave it out")
    schema = releases.pricer.tables.schema(plan.source)
    return f"{query_key(Plan(plan.aggregation))} {complete_rows_of(plan, schema)}"


def _reconciled(releases: ReleasePipeline, family: Sequence[Answer]) -> list[ReconciledEstimates]:
    """The reconciled estimates of answers that add up."""
    pricer = releases.pricer
    rows: dict[int, Charge] = {}
    for answer in family:
        for row in pricer.observations(answer.plan):
            table = batch_table_of(row)
            for one in [row] if table is None else rows_of_batch(releases.account.ledger, row, table):
                rows[one.id] = one
    plans = {row.id: plan_of(row) for row in rows.values()}
    queries = [pricer.tables.compile(plan) for plan in plans.values()]
    refuse_different_vectors(queries)
    levels = levels_of(list(plans.values()), pricer.tables.schema(family[0].plan.source))
    expressions = [level.level.expression for level in levels]
    sizes = tuple(len(level.keys) for level in levels)

    def positions(plan: Plan) -> Levels:
        return tuple(expressions.index(group.expression) for group in plan.group_by)

    measured, precisions = _combined({row: positions(plan) for row, plan in plans.items()}, rows, sizes)
    design = Marginals(sizes, tuple(measured))
    weights = np.array([precisions.get(table, 0.0) for table in design.subsets])
    ids = frozenset().union(*(one for answer in family for one in answer.measurement_ids))
    result = []
    for answer in family:
        own = positions(answer.plan)
        sums = design.estimate(tuple(sorted(own)), measured, weights)
        sums = sums.transpose(*(sorted(own).index(level) for level in own), sums.ndim - 1)
        result.append(_with_values(releases, answer, sums.reshape(-1, sums.shape[-1]), ids))
    return result


def _combined(
    positions: dict[int, Levels], rows: dict[int, Charge], sizes: tuple[int, ...]
) -> tuple[dict[Levels, Floats], dict[Levels, float]]:
    """The inverse-variance mean of the measurements of each table, and its precision relative to the best row."""
    smallest = min(row.measurement.sigma for row in rows.values() if row.measurement)
    sums: dict[Levels, Floats] = {}
    precisions: dict[Levels, float] = {}
    for number, row in rows.items():
        if row.measurement is None:
            continue
        table, weight = tuple(sorted(positions[number])), (smallest / row.measurement.sigma) ** 2
        values = weight * ascending(row.measurement.to_floats(), positions[number], sizes)
        sums[table] = sums[table] + values if table in sums else values
        precisions[table] = precisions.get(table, 0.0) + weight
    return {table: values / precisions[table] for table, values in sums.items()}, precisions


def _with_values(
    releases: ReleasePipeline, answer: Answer, sums: Floats, ids: frozenset[tuple[int, int]]
) -> ReconciledEstimates:
    """An answer with other estimates and the same intervals."""
    query = releases.pricer.tables.compile(answer.plan)
    ones = np.ones(query.cells)
    value = estimate(query, answer.view, sums, ones, ones, releases.pricer.tables.schema(answer.plan.source)).value
    return ReconciledEstimates(
        description=f"{answer.description}, reconciled",
        names=answer.names,
        keys=answer.keys,
        outputs=answer.outputs,
        **answer._intervals(lambda arrays: _moved(arrays, value)),
        group_values=answer.group_values,
        confidence=answer.confidence,
        simultaneous=answer.simultaneous,
        notice=answer.notice,
        excluded=answer.excluded,
        condition=answer.condition,
        uncounted=answer.uncounted,
        measurement_ids=(ids,) * len(answer.keys),
        is_refined=answer.is_refined,
        is_two_way=answer.is_two_way,
        dates=answer.dates,
        answer=answer,
    )


def _moved(arrays: IntervalArrays, value: Floats) -> IntervalArrays:
    """Other estimates with the same intervals; tables of ungrouped statistics keep their shape."""
    value = value.reshape(arrays.value.shape) if value.size == arrays.value.size else arrays.value
    _, low, high = arrays.unclipped
    return replace(arrays, value=value, raw=(value, low, high), whole_range=arrays.has_whole_range)
