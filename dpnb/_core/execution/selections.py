"""Selections on rows of this process: the order charge, read, choose, write, as for other releases.

A selection is charged in full as pure DP by the same rule as a launch (`admit_launch`), and it is a row of the ledger
of its own kind.  It is not interactive: its one answer is a function of the rows and of coins, so nothing about it can
be interleaved.  If the process ends between charge and answer, the same request answers the same charge later; that is
as if the answer had been computed at the charge and displayed later.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dpnb._core import registry
from dpnb._core.execution.releases import LocalReleases
from dpnb._core.execution.selection_terms import SelectionTerms, admit_selection, selection_key
from dpnb._plan.identity import query_key
from dpnb.accounting.grid import capped_up
from dpnb.accounting.losses import PureDP
from dpnb.copying import NotCopyable
from dpnb.ledger import Charge
from dpnb.ledger.charge import SELECTION
from dpnb.progress import Stage, at


class LocalSelections(NotCopyable):
    """Charges selections and answers them from rows of this process, with what `releases` uses."""

    def __init__(self, releases: LocalReleases) -> None:
        pricer, self._releases = releases.pricer, releases
        self._tables, self._account, self._version = pricer.tables, pricer.account, pricer.version

    def select(self, terms: SelectionTerms, epsilon: Fraction) -> Charge:
        """Charge a selection and answer it, or find the row of the identical one."""
        charge = self._charge(terms, epsilon)
        return self._answer(terms, epsilon, charge) if charge.result is None else charge

    def _charge(self, terms: SelectionTerms, epsilon: Fraction) -> Charge:
        """Find the request in the ledger, or admit and write its charge; durable when this returns."""
        ledger, key = self._account.ledger, selection_key(self._account, self._version, terms, epsilon)
        with ledger.lock.checked():
            known = ledger.by_request_key(key)
        if known is None or known.result is None:
            self._tables.ready()
        with ledger.transaction():
            known = ledger.by_request_key(key)
            if known is not None:
                return known
            loss = capped_up(PureDP(epsilon), self._account.filter)
            counted = admit_selection(self._account, self._version, terms, loss)
            return ledger.reserve(
                kind=SELECTION,
                request_key=key,
                node=self._account.root_node,
                table_version=self._version,
                query_key=query_key(terms.plan),
                plan=terms.plan.to_json(),
                arguments=terms.request(epsilon),
                loss=loss,
                charged=self._account.guarantee.initial_filter.recorded_charge(loss, counted),
                answered=False,
                cell_id=registry.current_cell(),
            )

    def _answer(self, terms: SelectionTerms, epsilon: Fraction, charge: Charge) -> Charge:
        """Read rows, choose and write the answer, also for a charge that was not answered before."""

        def answered() -> Charge:
            with at(Stage.ADDING):
                counts = [int(total) for total in self._tables.opened.sums(terms.query)]
            with at(Stage.NOISE):
                winners = terms.choice(epsilon).draw(counts, self._releases.source)
            with at(Stage.WRITING):
                result = {"largest": [terms.query.keys[index] for index in winners]}
                words = self._releases.reader.words_to_store(replace(charge, status="released", result=result))
                return self._account.ledger.answer(charge, result, words)

        return self._releases.guarded(charge, answered)
