"""Selections of the largest groups of one session."""

from __future__ import annotations

from fractions import Fraction

from dpnb._compile.explanation import left_out
from dpnb._core.execution.executor import Executor
from dpnb._core.execution.selections import ALPHA, SelectionKind, SelectionTerms
from dpnb._core.history.cost_text import charge_text
from dpnb._core.pricing.public_knowledge import count_code
from dpnb._core.releases import ReleasePipeline
from dpnb.accounting.exact import decimal_sqrt_down, decimal_up, few_digits_down
from dpnb.accounting.losses import GDP, Loss
from dpnb.accounting.losses.gaussian import as_amount
from dpnb.copying import NotCopyable
from dpnb.errors import BudgetExceeded
from dpnb.ledger import Charge, refuse_unreadable
from dpnb.progress import Stage, work
from dpnb.results.selection import SelectedGroups, SelectionPreview


class SelectionPipeline(NotCopyable):
    """Selections of one session."""

    def __init__(self, releases: ReleasePipeline, executor: Executor, kind: SelectionKind) -> None:
        self._releases, self._executor, self._kind, self._account = releases, executor, kind, releases.account

    def release(self, terms: SelectionTerms, epsilon: Fraction) -> SelectedGroups:
        """Select the groups and charge epsilon; the identical request returns the recorded answer, free.

        After a `BudgetExceeded` nothing was charged; after an `ExecutionError` the same request uses the same charge.
        """
        with work(Stage.CHARGING):
            with self._executor.refusals_of(lambda: terms.description):
                (charge,) = self._executor.run(terms.request(epsilon))
            return self._result(terms, epsilon, charge)

    def preview(self, terms: SelectionTerms, epsilon: Fraction) -> SelectionPreview:
        """The cost and the reliability of a selection; free, and computed without the table."""
        account = self._account
        request = terms.request(epsilon)
        with account.ledger.transaction():
            known = self._executor.find(request)
            is_known = bool(known)
            choice = terms.charged(known[0].loss) if known else terms.choice(epsilon)
            cost_fraction: float | None = 0.0
            after, refusal, counts, cost = account.filter.headroom, None, None, None
            if not is_known:
                try:
                    account.tree.refuse_ended(account.root_node, self._releases.version)
                    loss, counted = self._kind.admitted(request)
                    cost_fraction, after = account.forecast(counted)
                    cost = charge_text(account, loss, counted, cost_fraction)
                    counts = _spent_on_counts(counted)
                except BudgetExceeded as error:
                    cost_fraction, refusal = None, str(error)
        return SelectionPreview(
            description=terms.description,
            epsilon=epsilon,
            loss=choice.loss,
            mechanism=terms.mechanism(choice),
            cost_fraction=cost_fraction,
            cost_text=cost,
            headroom_after=few_digits_down(after),
            refusal=refusal,
            is_known=is_known,
            shortfall=decimal_up(terms.shortfall(choice)),
            unit=terms.unit,
            reliability=terms.reliability(choice),
            confidence=float(1 - ALPHA),
            groups=terms.query.cells,
            counts_loss=counts,
            counts_shortfall=None if counts is None else terms.shortfall_of_counts(counts),
            notice=self._releases.notice,
            left_out=self._left_out(terms),
        )

    def _left_out(self, terms: SelectionTerms) -> tuple[tuple[str, str], ...]:
        tables = self._releases.pricer.tables
        source = terms.plan.source
        return tuple(left_out(terms.query, tables.unit(source), tables.units, tables.schema(source)))

    def _result(self, terms: SelectionTerms, epsilon: Fraction, charge: Charge) -> SelectedGroups:
        with refuse_unreadable(f"row {charge.id}"):
            keys = tuple(tuple(key) for key in (charge.result or {})["largest"])
            choice = terms.charged(charge.loss)
        cost_fraction = self._account.cost_fraction(charge.id)
        return SelectedGroups(
            description=terms.description,
            names=tuple(group.name for group in terms.plan.group_by),
            group_keys=keys,
            is_single=terms.is_single,
            epsilon=epsilon,
            cost=charge.loss,
            cost_fraction=cost_fraction,
            cost_text=charge_text(self._account, charge.loss, charge.charged, cost_fraction),
            shortfall=decimal_up(terms.shortfall(choice)),
            unit=terms.unit,
            reliability=terms.reliability(choice),
            mechanism=terms.mechanism(choice),
            confidence=float(1 - ALPHA),
            code=count_code(terms.plan, keys),
            notice=self._releases.notice,
            left_out=self._left_out(terms),
            time=charge.time,
        )


def _spent_on_counts(counted: Loss) -> GDP | None:
    """The loss for which counts could be released at the same cost; None if a reserve in pure DP pays."""
    squared = counted.noise_mu_squared
    return None if squared is None or as_amount(counted).epsilon else GDP(decimal_sqrt_down(squared))
