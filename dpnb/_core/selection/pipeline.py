"""Selections of one session: the order charge, read, choose, write, as for other releases.

A selection is charged in full as pure DP by the same rule as a launch (`admit_launch`), and it is a row of the ledger
of its own kind.  It is not interactive: its one answer is a function of the rows and of coins, so nothing about it can
be interleaved.  If the kernel ends between charge and answer, the same request answers the same charge later; that is
as if the answer had been computed at the charge and displayed later.
"""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

from dpnb._backends.guard import run_guarded
from dpnb._backends.numpy_settings import isolated_numeric_settings
from dpnb._core import registry
from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.admission import admit_launch, recorded_charge
from dpnb._core.accountant.cost_text import charge_text
from dpnb._core.refusals import REFUSALS
from dpnb._core.releases import FAILED, INTERRUPTED, ReleasePipeline
from dpnb._core.selection.terms import ALPHA, SelectionTerms
from dpnb._core.tables import PrivateTables
from dpnb._plan.code import count_code
from dpnb._plan.identity import query_key
from dpnb.accounting.exact import decimal_sqrt_down, decimal_up
from dpnb.accounting.losses import GDP, Loss, PureDP, PureGDP
from dpnb.copying import NotCopyable
from dpnb.errors import BudgetExceeded, LedgerError, RequestError
from dpnb.ledger import Charge, refuse_unreadable
from dpnb.ledger.charge import SELECTION, digest
from dpnb.mechanisms.randomness import NoiseSource
from dpnb.progress import Stage, at, work
from dpnb.results.selection import SelectedGroups, SelectionPreview


class SelectionPipeline(NotCopyable):
    """Selections of one session.

    Parameters
    ----------
    releases : ReleasePipeline
        The other releases, with the log of the session.
    tables : PrivateTables
        The private tables.
    account : Accountant
        The accountant that pays.
    source : NoiseSource
        Source of the random bits.
    """

    def __init__(
        self, releases: ReleasePipeline, tables: PrivateTables, account: Accountant, source: NoiseSource
    ) -> None:
        self._releases, self._tables, self._account, self._source = releases, tables, account, source

    def release(self, terms: SelectionTerms, epsilon: Fraction) -> SelectedGroups:
        """Select the groups and charge epsilon; the identical request returns the recorded answer, free.

        Raises
        ------
        BudgetExceeded
            The loss does not fit; nothing was charged.
        RequestError
            Accounting is individual, or the filter cannot count pure DP.
        ExecutionError
            The selection failed after the charge; the same request uses the same charge.
        """
        with work(Stage.CHARGING):
            try:
                charge = self._charge(terms, epsilon)
            except REFUSALS as error:
                self._releases.refused(terms.description, error)
                raise
            if charge.result is None:
                charge = self._answer(terms, epsilon, charge)
            self._releases.log.note_request(charge, registry.current_cell())
            self._releases.changed()
            return self._result(terms, epsilon, charge)

    def preview(self, terms: SelectionTerms, epsilon: Fraction) -> SelectionPreview:
        """The cost and the reliability of a selection; free, and computed without the table.

        Raises
        ------
        RequestError
            As for `release`.
        """
        loss, account = PureDP(epsilon), self._account
        with account.ledger.transaction():
            is_known = account.ledger.by_request_key(self._key(terms, epsilon)) is not None
            cost_fraction: float | None = 0.0
            after, refusal, counts, cost = account.filter.headroom, None, None, None
            if not is_known:
                try:
                    counted = self._admit(terms, loss)
                    cost_fraction, after = account.forecast(counted)
                    cost = charge_text(account, loss, counted, cost_fraction)
                    counts = _spent_on_counts(counted)
                except BudgetExceeded as error:
                    cost_fraction, refusal = None, str(error)
        return SelectionPreview(
            description=terms.description,
            loss=loss,
            cost_fraction=cost_fraction,
            cost_text=cost,
            headroom_after=after,
            refusal=refusal,
            is_known=is_known,
            shortfall=decimal_up(terms.shortfall(epsilon)),
            unit=terms.unit,
            reliability=terms.reliability(epsilon),
            confidence=float(1 - ALPHA),
            groups=terms.query.cells,
            counts_loss=counts,
            counts_shortfall=None if counts is None else terms.shortfall_of_counts(counts),
            notice=self._releases.notice,
        )

    def _key(self, terms: SelectionTerms, epsilon: Fraction) -> str:
        """Identity of a request."""
        node = self._account.root_node
        return digest(["selection", self._releases.version, node, terms.plan.to_json(), terms.request(epsilon)])

    def _admit(self, terms: SelectionTerms, loss: Loss) -> Loss:
        """What the filter counts, unless the selection is not allowed or does not fit; call in a transaction."""
        self._account.tree.refuse_ended(self._account.root_node, self._releases.version)
        if self._account.individual:
            raise RequestError(
                f"{terms.description}: would charge every unit, including those without rows in it; under "
                "accounting='individual' release the counts, which charge only the units they use"
            )
        try:
            return admit_launch(self._account, terms.description, loss)
        except BudgetExceeded as error:
            refusal = f"{error}; .preview() of the selection shows which epsilons fit"
        raise BudgetExceeded(refusal)

    def _charge(self, terms: SelectionTerms, epsilon: Fraction) -> Charge:
        """Find the request in the ledger, or admit and write its charge; durable when this returns."""
        ledger, key, loss = self._account.ledger, self._key(terms, epsilon), PureDP(epsilon)
        with ledger.lock.checked():
            known = ledger.by_request_key(key)
        if known is None or known.result is None:
            self._tables.ready()
        with ledger.transaction():
            known = ledger.by_request_key(key)
            if known is not None:
                return known
            counted = self._admit(terms, loss)
            return ledger.reserve(
                kind=SELECTION,
                request_key=key,
                node=self._account.root_node,
                table_version=self._releases.version,
                query_key=query_key(terms.plan),
                plan=terms.plan.to_json(),
                arguments=terms.request(epsilon),
                loss=loss,
                charged=recorded_charge(self._account, loss, counted),
                answered=False,
                cell_id=registry.current_cell(),
            )

    def _answer(self, terms: SelectionTerms, epsilon: Fraction, charge: Charge) -> Charge:
        """Read rows, choose and write the answer, also for a charge that was not answered before.

        A choice that did not reach the ledger is never shown, since the charge will be answered with other coins.
        """
        ledger = self._account.ledger

        @isolated_numeric_settings()
        def answered() -> Charge:
            with at(Stage.ADDING):
                counts = [int(total) for total in self._tables.opened.sums(terms.query)]
            with at(Stage.NOISE):
                winners = terms.choice(epsilon).draw(counts, self._source)
            with at(Stage.WRITING):
                return ledger.answer(charge, {"largest": [terms.query.keys[index] for index in winners]})

        try:
            return run_guarded(answered, FAILED, interrupted=INTERRUPTED, public_errors=LedgerError)
        except BaseException:
            with suppress(LedgerError):  # if this cannot be written either, the charge has no answer
                ledger.fail(charge)
            self._releases.changed()
            raise

    def _result(self, terms: SelectionTerms, epsilon: Fraction, charge: Charge) -> SelectedGroups:
        with refuse_unreadable(f"row {charge.id}"):
            keys = tuple(tuple(key) for key in (charge.result or {})["largest"])
        cost_fraction = self._account.cost_fraction(charge.id)
        return SelectedGroups(
            description=terms.description,
            names=tuple(group.name for group in terms.plan.group_by),
            group_keys=keys,
            is_single=terms.is_single,
            cost=PureDP(epsilon),
            cost_fraction=cost_fraction,
            cost_text=charge_text(self._account, charge.loss, charge.charged, cost_fraction),
            shortfall=decimal_up(terms.shortfall(epsilon)),
            unit=terms.unit,
            reliability=terms.reliability(epsilon),
            confidence=float(1 - ALPHA),
            code=count_code(terms.plan, keys),
            notice=self._releases.notice,
            time=charge.time,
        )


def _spent_on_counts(counted: Loss) -> GDP | None:
    """The loss for which counts could be released at the same cost; None if a reserve in pure DP pays."""
    if not isinstance(counted, GDP | PureGDP) or (isinstance(counted, PureGDP) and counted.epsilon):
        return None
    return GDP(decimal_sqrt_down(counted.mu_squared))
