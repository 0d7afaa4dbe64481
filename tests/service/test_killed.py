"""The service is killed while clients use it; there are longer runs in tests/soak."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from dpnb._core.accountant.grant import Mode
from load import clinic
from service.killed import Shown, check, figures, killed_while_clients_ask

pytestmark = pytest.mark.slow


def test_a_killed_service_charges_and_answers_each_request_once(tmp_path: Path) -> None:
    killed_while_clients_ask(tmp_path, random.Random(24), clients=3, queries=25, kills=5)


@pytest.mark.parametrize("mode", ["reserved", "pooled"])
def test_so_does_one_with_several_analysts(mode: Mode, tmp_path: Path) -> None:
    killed_while_clients_ask(tmp_path, random.Random(25), clients=3, queries=10, kills=3, mode=mode)


def test_the_check_finds_lost_and_repeated_charges(tmp_path: Path) -> None:
    """A control: an answer without a charge, and a charge that nobody was answered for."""
    session = clinic(tmp_path / "clinic.dpnb")
    shown: Shown = {1: figures(session, 1)}
    session.ledger.close()
    for wrong in ({**shown, 2: shown[1]}, {}):
        with pytest.raises(AssertionError):
            check(tmp_path / "clinic.dpnb", wrong)
