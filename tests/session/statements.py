"""Sessions and ledgers of every kind, for the tests of disclosure statements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

import dpnb
from dpnb._core.accountant.grant import Mode
from dpnb._core.accountant.granting import freeze, grant, move_cap, share_of, unfreeze, whole_of
from dpnb.accounting.exact import exact
from dpnb.ledger import RequestOrigin, requested_by
from dpnb.session.base import BaseSession

EVERYTHING = dpnb.Budget(epsilon=2, delta=1e-5, discovery_delta=1e-6, pure_epsilon=0.2)
BOTH = dpnb.Budget(epsilon=1, delta=1e-6)

KINDS: dict[str, dict[str, Any]] = {
    "gdp": {"budget": BOTH},
    "mu": {"budget": dpnb.Budget.gdp(0.5)},
    "mu and more": {"budget": dpnb.Budget.gdp(0.5, discovery_delta=1e-8, pure_epsilon=0.1)},
    "everything": {"budget": EVERYTHING},
    "pure": {"budget": dpnb.Budget.pure(0.3)},
    "discovery": {"budget": dpnb.Budget(epsilon=1, delta=1e-6, discovery_delta=1e-7)},
    "zcdp": {"budget": BOTH, "filter": "zcdp"},
    "rdp": {"budget": BOTH, "filter": "rdp"},
    "approx-dp": {"budget": BOTH, "filter": "approx-dp"},
    "rogers": {"budget": BOTH, "filter": "rogers"},
    "basic": {"budget": BOTH, "filter": "basic"},
    "individual": {"budget": BOTH, "accounting": "individual"},
    "individual, drop": {"budget": BOTH, "accounting": "individual", "on_exhausted": "drop"},
    "individual, zcdp": {"budget": BOTH, "accounting": "individual", "filter": "zcdp"},
    "none": {"budget": None},
    "none, other delta": {"budget": None, "odometer_delta": 1e-9},
}
"""Arguments of sessions: every filter, kind of budget and kind of accounting."""


def opened(ledger: Path | str = ":memory:", **changes: Any) -> dpnb.Session:
    options: dict[str, Any] = {"budget": BOTH, "ledger": ledger, **changes}
    return dpnb.Session(
        pd.DataFrame(
            {"person": [i // 2 for i in range(600)], "age": [i % 90 for i in range(600)], "g": ["a", "b"] * 300}
        ),
        name="clinic",
        privacy_unit="person",
        max_rows_per_unit=2,
        schema={"age": dpnb.Bounded(0, 90), "g": dpnb.Categories(["a", "b"])},
        **options,
    )


def used(session: BaseSession) -> BaseSession:
    """Requests of each kind that the session admits."""
    df, budget = session.frame, session.budget
    has_gaussian = budget is None or bool(budget.loss.mu_squared)
    if has_gaussian:
        mean, target = df["age"].mean(), {"mu": 0.05} if budget is None else {"share": 0.05}
        mean.release(**target)
        mean.release(**{name: 2 * value for name, value in target.items()})
        df.groupby("g").size().release(**target)
    if session.accounting == "worst-case" and session.filter.__class__.__name__.startswith(("GDP", "Unbounded")):
        df.groupby("g").size().idxmax().release(epsilon=0.05)
        session.above_threshold(50, epsilon=0.02, name="scan")
        if has_gaussian:
            colleague = session.delegate(share=0.1, name="col") if budget is not None else None
            if colleague is not None:
                colleague.frame["age"].sum().release(share=0.5)
            session.partition("g", max_parts_per_unit=1)["a"].frame["age"].mean().release(mu=0.02)
    return session


class Divided:
    """A ledger whose budget is divided among two analysts, Ana and Bob, each of whom has made requests."""

    def __init__(self, path: Path, mode: Mode, names: tuple[str, str] = ("ana", "bob")) -> None:
        self.session, self.mode = opened(path, budget=EVERYTHING), mode
        self.core = self.session._core
        self.path = str(path)
        with requested_by(RequestOrigin("(settings)")):
            half = share_of(whole_of(self.core.account), exact(0.5))
            self.parts = {name: grant(self.core.account, "analyst", name, mode, half, version="1") for name in names}
            move_cap(self.core.account, self.parts[names[0]], share_of(half, exact(0.9)), version="1")
        self.analysts = {name: BaseSession(self.core.for_analyst(part)) for name, part in self.parts.items()}
        with requested_by(RequestOrigin(names[0])):
            used(self.analysts[names[0]])
        with requested_by(RequestOrigin(names[1])):
            self.analysts[names[1]].frame["age"].sum().release(mu=0.07)
        with requested_by(RequestOrigin("carol")):
            freeze(self.core.account, "a review <i>soon</i>", version="1")
            unfreeze(self.core.account, version="1")

    def asks(self, name: str, mu: float) -> None:
        """One more request."""
        with requested_by(RequestOrigin(name)):
            self.analysts[name].frame["age"].median().release(mu=mu)
