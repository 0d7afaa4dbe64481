"""The computed parameters of a ledger: stored when it is created, since a later version of a library may differ."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction

from dpnb._core.accountant.declaring import declared_next
from dpnb.accounting.exact import decimal_down, from_text, to_text
from dpnb.accounting.guarantee import PrivacyGuarantee, make_guarantee
from dpnb.accounting.no_budget import budget_from_json
from dpnb.accounting.odometers import MixtureOdometer
from dpnb.errors import LedgerError
from dpnb.ledger import Ledger, refuse_unreadable
from dpnb.ledger.declared import Declared
from dpnb.ledger.queries import LedgerQueries

ODOMETER_DELTA = Fraction(1, 10**6)
"""Probability that the statement of an odometer is wrong, for a budget without a delta."""


def computed_parameters(
    guarantee: PrivacyGuarantee,
    public_size: int | None,
    delta: Fraction | None = None,
    sampled: Fraction = Fraction(0),
) -> dict[str, str]:
    """The parameters of a new ledger, or of a part of a budget whose delta is given.

    A part has a budget in GDP, without a delta of its own: its odometer has the delta that was declared for the whole.
    """
    slack = guarantee.budget.discovery_delta
    declared = guarantee.budget.delta or (ODOMETER_DELTA + slack if delta is None else delta)
    delta = declared - slack
    odometer = MixtureOdometer.tuned(guarantee.horizon, delta, slack_delta=slack)
    return {
        **guarantee.to_json(),
        "odometer_gamma": odometer.gamma.hex(),
        "odometer_delta": to_text(odometer.delta),
        **({} if public_size is None else {"public_size": str(public_size)}),
        **({"sampled": to_text(sampled)} if sampled else {}),
    }


def sampled_text(fraction: Fraction) -> str:
    """A declared fraction as the curator writes it."""
    return {Fraction(0): "'population'", Fraction(1): "'census'"}.get(fraction) or repr(decimal_down(fraction))


def sampled_of(parameters: Mapping[str, str]) -> Fraction:
    """The declared fraction of the population that the units are: 0 of a large one, 1 in a census."""
    with refuse_unreadable("the parameters"):
        fraction = from_text(parameters.get("sampled", "0"))
        if not 0 <= fraction <= 1:
            raise ValueError(fraction)
    return fraction


def with_sampled(ledger: LedgerQueries, wanted: Declared, sampled: Fraction | None, version: str) -> Declared:
    """What a ledger declares from now on; before its first request also with another declaration of `sampled`.

    Afterwards another one is refused, before anything is written; None is none.
    """
    metadata, parameters = declared_next(ledger, wanted, version)
    if sampled is None or sampled == (known := sampled_of(parameters)):
        return Declared(metadata, parameters)
    if ledger.declared_at_last_request() is not None:
        raise LedgerError(
            f"sampled: the ledger was created with sampled={sampled_text(known)}, as its disclosure statement says; "
            f"got {sampled_text(sampled)}; leave it out, or use another ledger"
        )
    others = {name: text for name, text in parameters.items() if name != "sampled"}
    return Declared(metadata, {**others, **({"sampled": to_text(sampled)} if sampled else {})})


def stored_parameters(
    parameters: Mapping[str, str], guarantee: PrivacyGuarantee
) -> tuple[PrivacyGuarantee, MixtureOdometer, int | None]:
    """The guarantee with the stored parameters, the odometer in its initial state, and the public number of units."""
    with refuse_unreadable("the parameters"):
        restored = guarantee.with_parameters(parameters)
        gamma = Fraction(float.fromhex(parameters["odometer_gamma"]))
        slack = guarantee.budget.discovery_delta
        odometer = MixtureOdometer(gamma, from_text(parameters["odometer_delta"]), slack_delta=slack)
        size = int(parameters["public_size"]) if "public_size" in parameters else None
    return restored, odometer, size


def parameters_of(ledger: Ledger) -> tuple[PrivacyGuarantee, MixtureOdometer, int | None]:
    """The guarantee of the session that a ledger was created for, and the rest as for `stored_parameters`."""
    metadata = ledger.metadata
    with refuse_unreadable("the metadata"):
        budget = budget_from_json(json.loads(metadata["budget"]))
        guarantee = make_guarantee(metadata["filter"], budget, individual="on_exhausted" in metadata)
    return stored_parameters(ledger.parameters, guarantee)
