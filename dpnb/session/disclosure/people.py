"""What a statement assumes about parts that were handed over."""

from __future__ import annotations

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.grant import HAND_OVER, REMOVE, TAKE_OVER
from dpnb.ledger.charge import ACT

HANDED_OVER = (
    "A ceiling was handed over to another analyst; the acts of the curator say when. That is possible only while "
    "nothing has been charged to it, so the new holder has all of it, and the ceilings add up to what they did. It "
    "tells the new holder that the analyst before had not been answered anything. The guarantee of the new holder "
    "assumes that this did not depend on answers of other analysts. That of all answers together does not assume it."
)

NO_CEILING = "nothing, since it was handed over"
"""The ceiling of a part whose place another one has taken."""


def handed_over(account: Accountant) -> tuple[str, ...]:
    """The assumption, if the rows, of the whole ledger or of one analyst, have such an act."""
    acts = [(one.launch or {})["act"] for one in account.ledger.summaries() if one.kind == ACT]
    return (HANDED_OVER,) if HAND_OVER in acts or TAKE_OVER in acts else ()


def is_revoked(account: Accountant) -> bool:
    """Whether the part can no longer be charged, by the acts among the rows of its analyst alone."""
    acts = [(one.launch or {})["act"] for one in account.ledger.summaries() if one.kind == ACT]
    about = [act for act in acts if act in ("revoke", "restore", REMOVE, HAND_OVER)]
    return bool(about) and (about[-1] != "restore" or HAND_OVER in about)
