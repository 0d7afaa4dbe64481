"""Whether a row of a ledger is paid for, and whether it has the words of its own answer."""

from __future__ import annotations

import json
import math

from dpnb._core.pricing.pricer import cell_subset
from dpnb._core.pricing.query_state import requested
from dpnb._core.tables import PrivateTables
from dpnb._request import BatchTable, LaunchMechanism, Release, ScanThreshold, SelectGroups
from dpnb._target import Target
from dpnb.accounting.losses.gaussian import as_amount
from dpnb.ledger import Charge
from dpnb.ledger.charge import LAUNCH, SELECTION
from dpnb.mechanisms.calibration import sigma_for
from dpnb.mechanisms.permute_and_flip import PermuteAndFlip


def is_paid_for(charge: Charge, tables: PrivateTables) -> bool:
    """Whether the loss of a row is at least that of its request, and its noise at least that of the loss."""
    if charge.sigma is None and charge.kind not in (SELECTION, LAUNCH):
        return True
    paid = as_amount(charge.loss)
    match requested(charge):
        case Release(plan=plan, target=Target(groups=groups)) if charge.sigma is not None:
            query = tables.compile(plan)
            subset = cell_subset(query, groups)
            measured = query if subset is None else tables.compile(plan, subset)
            return charge.sigma >= sigma_for(measured.l2_sensitivity_squared, charge.gdp)
        case BatchTable(plan=plan) if charge.sigma is not None:
            return charge.sigma >= sigma_for(tables.compile(plan).l2_sensitivity_squared, charge.gdp)
        case SelectGroups(plan=plan, winners=winners, epsilon=epsilon):
            choice = PermuteAndFlip(tables.compile(plan).cells, winners, epsilon)
            return epsilon <= paid.epsilon and charge.loss.count <= choice.rounds
        case LaunchMechanism(mechanism=ScanThreshold(epsilon=epsilon, max_positives=most, mu=mu)):
            thresholds = (charge.launch or {}).get("thresholds", 1)
            enough = (epsilon or 0) <= paid.epsilon and (mu or 0) ** 2 <= paid.mu_squared
            return enough and charge.loss.count == thresholds in (1, most)
    return True


def are_same(stored: str | None, computed: str | None) -> bool:
    """Whether words are the same, except for the last digits of a number, which the version of a library may change."""
    if stored is None or computed is None:
        return stored == computed
    pairs = zip(json.loads(stored), json.loads(computed), strict=True)
    return all(
        math.isclose(one, other, rel_tol=1e-9) or (math.isnan(one) and math.isnan(other))
        if isinstance(one, float) and isinstance(other, float)
        else one == other
        for one, other in pairs
    )
