"""An analyst's session at a service whose cap is below what could be granted, and a curator."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import dpnb
from dpnb.remote import RemoteSession
from dpnb.service.access.tokens import new_token
from dpnb.service.app import Service
from dpnb.service.configuration.parts import AmountSettings, DivisionSettings, PartSettings
from dpnb.service.curation.acts import act
from service.running import running
from service.served import open_people

SMALL, HALF = AmountSettings(Fraction(1, 100)), AmountSettings(Fraction(1, 2))
RESERVED = DivisionSettings(
    "reserved", tuple(PartSettings("analyst", name, ceiling=HALF, cap=SMALL) for name in ("ana", "bob"))
)
POOLED = DivisionSettings("pooled", tuple(PartSettings("analyst", name, cap=SMALL) for name in ("ana", "bob")))


@contextmanager
def asking(division: DivisionSettings) -> Iterator[tuple[RemoteSession, Service]]:
    """Ana's session, and the service."""
    with tempfile.TemporaryDirectory(prefix="dpnb-") as short:  # paths of sockets must be short
        folder = Path(short)
        session = open_people(folder / "people.dpnb", budget=dpnb.Budget.gdp(1), not_private_test_seed=26)
        token = new_token(folder / "tokens.json", "ana")
        with (
            running(folder, session, division) as (address, service),
            closing(dpnb.connect(address, "people", token=token)) as remote,
        ):
            yield remote, service


def decide(service: Service, kind: type, **changes: Any) -> None:
    """What a curator does about the oldest pending request."""
    table = service.tables["people"].table
    requests = table.session._core.account.tree.budget_requests().values()
    one = next(one for one in requests if one.decision is None)
    table.worker.submit("carl", lambda: act(table, "carl", kind(one.id, one.digest, **changes))).future.result()
