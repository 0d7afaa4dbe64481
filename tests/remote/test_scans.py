"""Scans over a service: their positives and their charges are those of a local session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dpnb
from dpnb.curator.audit import audit
from dpnb.errors import MechanismClosed
from dpnb.service.access.tokens import new_token
from dpnb.service.configuration.parts import DivisionSettings
from remote.people import people
from service.running import running

SCANS: dict[str, dict[str, Any]] = {
    "one positive": {"epsilon": "0.4"},
    "three positives": {"epsilon": "0.6", "max_positives": 3, "monotonic": True},
    "three positives, with values": {"epsilon": "0.6", "max_positives": 3, "return_values": True},
    "Gaussian": {"mu": "0.3", "max_queries": 8},
}


def scanned(session: Any) -> list[Any]:
    """What is shown of every scan: its answers in order, how it ends, and what is charged."""
    shown: list[Any] = []
    frame = session.frame
    for name, options in SCANS.items():
        scan = session.above_threshold(120, name=name, **options)
        for age in (90, 20, 80, 30, 40, 50):
            try:
                answer = scan.ask(frame[frame["age"] > age].count())
                shown.append((age, answer.above, str(answer)))
            except MechanismClosed as error:
                shown.append(str(error))
        again = session.above_threshold(120, name=name, **options)
        shown += [again is scan, scan.state, str(scan.cost), [one.above for one in scan.answers]]
        shown += [str(session.spent), session.headroom, session.odometer.bound]
    return shown


@pytest.mark.parametrize("filter_", ["gdp", "zcdp"])
def test_positives_and_charges_are_those_of_a_local_session(tmp_path: Path, filter_: str) -> None:
    budget = dpnb.Budget(epsilon=4, delta=1e-5)
    local = people(budget=budget, filter=filter_)
    served = people(budget=budget, filter=filter_, ledger=tmp_path / "people.dpnb")
    expected = scanned(local)
    with running(tmp_path, served, DivisionSettings()) as (address, _):
        remote = dpnb.connect(address, "people", token=new_token(tmp_path / "tokens.json", "ana"))
        try:
            assert scanned(remote) == expected
            rows = [[(row.loss, row.charged) for row in one.ledger.charges() if row.loss] for one in (local, served)]
        finally:
            remote.close()
    assert rows[0] == rows[1]
    assert len(rows[0]) == len(SCANS), "answers are not charged"
    assert audit(str(tmp_path / "people.dpnb")).is_fine
    positives = [one for one in expected if isinstance(one, tuple) and one[1]]
    assert 3 <= len(positives) < len(SCANS) * 6, "control: some answers are positive, and some are not"
