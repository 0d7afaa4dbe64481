"""Which selections of the largest groups are admitted, at which charge, and how the ledger finds them."""

from __future__ import annotations

from fractions import Fraction

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.admission import admit_launch
from dpnb._core.selection.terms import SelectionTerms
from dpnb.accounting.losses import Loss
from dpnb.errors import BudgetExceeded, RequestError
from dpnb.ledger import request_key


def selection_key(account: Accountant, version: str, terms: SelectionTerms, epsilon: Fraction) -> str:
    """Identity of a selection in the session of an accountant, for a version of the table."""
    return request_key.selection_key(version, account.root_node, terms.plan.to_json(), terms.request(epsilon))


def admit_selection(account: Accountant, version: str, terms: SelectionTerms, loss: Loss) -> Loss:
    """What the filter counts for a selection; call in a transaction."""
    account.tree.refuse_ended(account.root_node, version)
    if account.individual:
        raise RequestError(
            f"{terms.description}: would charge every unit, including those without rows in it; under "
            "accounting='individual' release the counts, which charge only the units they use"
        )
    try:
        return admit_launch(account, terms.description, loss)
    except BudgetExceeded as error:
        refusal = f"{error}; .preview() of the selection shows which epsilons fit"
    raise BudgetExceeded(refusal)
