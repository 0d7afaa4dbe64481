"""A part of a session's budget that a service grants to a project or an analyst: a row of the ledger.

In reserved mode a part has a ceiling, fixed when it is made, and the ceilings inside a part add up to at most its own.
An analyst's requests are charged to their own node, by a filter whose budget is the ceiling, and everything that the
analyst receives is computed from the rows of that node.  So each analyst's answers have the guarantee of the ceiling,
and all of them together that of the session: what the filters of the parts admit adds up to at most the sum of the
ceilings, in each of the three components, and the filter of the session adds the same losses.

In pooled mode all analysts use the session's own node.  They share answers, see each other's charges, and are charged
by the session's filter; caps limit what one project or analyst can be charged, may add up to more than the budget, and
only the session has a guarantee.

Components add as in :mod:`dpnb.accounting.conversions.reserve`: mu squared, the delta of discovered groups, and the
epsilon of mechanisms in pure DP.  A launch is charged once, at the smallest residual of all filters that it enters,
componentwise.  That is valid in each of them: if RR(e1) (x) G_s >= RR(p) (x) G_r with c = r^2 - s^2, then for every E
>= p and R >= r RR(e1) (x) RR(E - p) (x) G_sqrt(R^2 - c) >= RR(E) (x) G_R, since composing both sides with G_sqrt(R^2 -
r^2) and RR(E - p) keeps the order, and RR(p) (x) RR(E - p) >= RR(E).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from dpnb.accounting.budget import Budget
from dpnb.accounting.losses import PureGDP
from dpnb.wire.messages import Level

Mode = Literal["reserved", "pooled"]

SETTINGS_ACTOR = "(settings)"
"""Who made what the settings of a service say, in the ledger; no person has such a name."""


REMOVE, HAND_OVER, TAKE_OVER = "remove", "hand_over", "take_over"
"""The acts with which a person leaves a table, gives up an unused part, and gets the part of another one."""

LEDGER_RESTORED = "ledger_restored"
"""The act with which a service is started on a ledger that may lack charges."""


@dataclass(frozen=True)
class Grant:
    """A part of the budget, of a project or an analyst.

    `id` is that of the row that made it, and `node` the node that it is a part of: the session's, or that of a
    project.  `ceiling` is the budget of the part, in reserved mode.  `cap` is the limit of its charges when it was
    made; the current one is `BudgetTree.cap`.  `parameters` are the computed ones of its filter and its odometer, in
    reserved mode.  A revoked part can no longer be charged.  Who was removed may no longer open the table either.  A
    part that was handed over stays revoked for ever, and its ceiling counts no more: `taken_from` is the row of the
    part that this one took the place of.
    """

    id: int
    level: Level
    name: str
    mode: Mode
    node: str
    ceiling: PureGDP | None
    cap: PureGDP | None
    parameters: Mapping[str, str]
    is_revoked: bool = False
    is_removed: bool = False
    is_handed_over: bool = False
    taken_from: int | None = None

    def after(self, act: str, *, by_settings: bool) -> Grant:
        """The part after an act: a revocation, the end of one, a removal, or that it is handed over."""
        if self.is_handed_over:
            return self
        is_removed = act == REMOVE or (act == "revoke" and (by_settings or self.is_removed))
        return replace(self, is_revoked=act != "restore", is_removed=is_removed, is_handed_over=act == HAND_OVER)

    @property
    def budget(self) -> Budget:
        """The ceiling as a budget; a `ValueError` if there is none, as in pooled mode."""
        if self.ceiling is None:
            raise ValueError(self.mode)
        return budget_of(self.ceiling)

    def to_details(self) -> dict[str, Any]:
        """What the ledger stores."""
        return {
            "grant": self.level,
            "name": self.name,
            "mode": self.mode,
            "ceiling": None if self.ceiling is None else self.ceiling.to_json(),
            "cap": None if self.cap is None else self.cap.to_json(),
            "parameters": dict(self.parameters),
            **({} if self.taken_from is None else {"taken_from": self.taken_from}),
        }

    @classmethod
    def from_details(cls, number: int, node: str, details: Mapping[str, Any]) -> Grant:
        """Read what `to_details` wrote; KeyError, TypeError, ValueError or DpnbError if it cannot be read."""
        level, mode, name = details["grant"], details["mode"], details["name"]
        if level not in get_args(Level) or mode not in get_args(Mode) or not isinstance(name, str):
            raise ValueError
        ceiling, cap = amount_from_json(details["ceiling"]), amount_from_json(details["cap"])
        if (ceiling is None) != (mode == "pooled"):
            raise ValueError
        parameters, before = dict(details["parameters"]), details.get("taken_from")
        return cls(number, level, name, mode, node, ceiling, cap, parameters, taken_from=before)


def budget_of(amount: PureGDP) -> Budget:
    """An amount as a budget."""
    if not amount.mu_squared:
        return Budget.pure(amount.epsilon)
    return Budget.from_mu_squared(amount.mu_squared, amount.delta, amount.epsilon)


def amount_from_json(stored: Any) -> PureGDP | None:
    """An amount that a ledger stores, or None; KeyError, TypeError, ValueError or DpnbError if it cannot be read."""
    if stored is None:
        return None
    if stored["kind"] != PureGDP.kind:
        raise TypeError(stored["kind"])
    return PureGDP.from_json(stored)


# --- the cap of a part, and what approved requests add to it ----------------------------------------------------------


@dataclass(frozen=True)
class Raise:
    """What an approved request adds to a cap, in each component.

    From the time `until` on, written as in rows of the ledger, it no longer counts; None if it does not lapse.
    """

    amount: PureGDP
    until: str | None = None


@dataclass(frozen=True)
class Cap:
    """A cap with the raises that were approved since it was set; setting it ends them.

    `base` is None for no cap.  `ceiling` is that of the part, in reserved mode, which no raise exceeds.
    """

    base: PureGDP | None
    ceiling: PureGDP | None = None
    raises: tuple[Raise, ...] = ()

    def at(self, time: str) -> PureGDP | None:
        """The cap that holds at the time of a charge.

        That is the time in the charge's row of the ledger, so that everybody who reads the ledger finds the same cap.
        """
        if self.base is None:
            return None
        total = self.base
        for one in self.raises:
            if one.until is None or time < one.until:
                total = total + one.amount
        if self.ceiling is None or not self.raises:
            return total
        return PureGDP.of(*(min(pair) for pair in zip(total.parts, self.ceiling.parts, strict=True)))

    def lapsed(self, time: str) -> int:
        """The number of raises that no longer count at a time."""
        return sum(one.until is not None and one.until <= time for one in self.raises)

    def set_to(self, base: PureGDP | None) -> Cap:
        """Another cap with the same ceiling."""
        return Cap(base, self.ceiling)

    def raised(self, amount: PureGDP, until: str | None) -> Cap:
        """The cap after a request was approved."""
        return replace(self, raises=(*self.raises, Raise(amount, until)))
