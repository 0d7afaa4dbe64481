"""Attacks of an analyst who writes to the service without the session, and of another user of its machine."""

from __future__ import annotations

import copy
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

import dpnb
from dpnb._core.accountant.tree import Launch
from dpnb._plan.expressions.nodes import Column, Cut
from dpnb._plan.plan import GroupLevel
from dpnb.errors import DpnbError, RequestError
from dpnb.interactive.calls import execute_call
from dpnb.interactive.descent import options
from dpnb.interactive.partition import MOST_KEPT, parts_to_json
from dpnb.ledger import node_of
from dpnb.ledger.shared_rows import SharedRows
from dpnb.service import server
from dpnb.wire.calls import LaunchMechanism
from service.bodies import neighbours
from service.test_process import Curator, count

HUGE = "0x" + "f" * 9000


def fit_launch(session: dpnb.Session) -> dict[str, Any]:
    """The arguments of a launch of a gradient descent, as the ledger stores them."""
    df = session.frame
    df.fit("x", on=["k", "g"], family="linear", mu=0.05, steps=3, clip_norm=1.0, public_size=7, name="fit")
    (launch,) = session._core.account.tree.sync().values()
    assert isinstance(launch, Launch)
    return dict(launch.details["arguments"])


CHANGES: list[dict[str, Any]] = [
    {"learning_rate": HUGE},
    {"learning_rate": f"1/{HUGE}"},
    {"terms": []},
    {"terms": ["intercept"] * 5},
    {"start": [0.0]},
    {"start": [1e308] * 4},
    {"chains": 1001},
    {"chains": True},
    {"steps": 10**7},
    {"clip_norm": 5e-324},
    {"clip_norm": 1e308},
    {"clip_norm": "1"},
    {"mu": f"1/{HUGE}"},
    {"check_every": 1, "check_mu": HUGE},
    {"rows": "[" * 5000},
    {"rows": '{"aggregation":{"of":"count"},"source":{"type":"join","left":"","right":""}}'},
    {"model": {"family": "linear", "outcome": {"op": "column", "name": "who"}, "columns": [], "categories": []}},
    {"public_size": 0},
    {"noise_token": 1},
]


@pytest.mark.parametrize("changes", CHANGES, ids=lambda one: "-".join(one))
def test_a_gradient_descent_with_other_arguments_is_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    session, _ = neighbours(tmp_path)
    arguments = fit_launch(session)
    execute_call(session._mechanisms, LaunchMechanism("gradient_descent", "same", copy.deepcopy(arguments)))
    rows = session.ledger.count
    assert rows == 2  # control: the unchanged arguments are launched
    with pytest.raises(DpnbError) as error:
        execute_call(session._mechanisms, LaunchMechanism("gradient_descent", "other", {**arguments, **changes}))
    assert session.ledger.count == rows
    assert len(str(error.value)) < 1000


def test_an_infinite_learning_rate_would_be_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control of the above: a row of the ledger that is no JSON."""
    session, _ = neighbours(tmp_path)
    arguments = {**fit_launch(session), "learning_rate": HUGE}
    monkeypatch.setattr(options, "MAX_RATE", float("inf"))
    execute_call(session._mechanisms, LaunchMechanism("gradient_descent", "other", arguments))
    details = str(SharedRows(session.ledger).after(1, 1)[0]["details"])

    def refuse(name: str) -> float:
        raise ValueError(name)

    with pytest.raises(ValueError, match="Infinity"):
        json.loads(details, parse_constant=refuse)


def readable_by_others(folder: Path) -> set[str]:
    files = {path for path in folder.iterdir() if path.is_file()}
    return {path.name for path in files if stat.S_IMODE(path.stat().st_mode) & 0o077}


@pytest.mark.slow
@pytest.mark.waits
@pytest.mark.parametrize("mask", [server.PRIVATE, 0o022])
def test_other_users_read_no_file_that_the_service_makes(
    mask: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPNB_TEST_MASK", str(mask))
    curator = Curator(tmp_path)
    before = {path.name for path in tmp_path.iterdir()}
    with curator.served():
        assert curator.post(count())["ids"] == [1]
        made = readable_by_others(tmp_path) - before
        existing = {path.name for path in tmp_path.iterdir()} - before
    assert {"people.dpnb", "service.log", "service-logins.log"} <= existing
    assert (made == set()) == (mask == server.PRIVATE), made
    assert os.stat(curator.socket.parent).st_mode & 0o007 == 0


FINE = 2000
EDGES = tuple(-3 + 11 * place / FINE for place in range(FINE + 1))
BY_CUT = GroupLevel("c", Cut(Column("x"), EDGES, tuple(f"l{number}" for number in range(FINE))))


@pytest.mark.parametrize("part", ["nonsense", f"l{FINE - 1}"])
def test_a_request_to_a_part_makes_no_session_of_another_part(part: str, tmp_path: Path) -> None:
    """A partition costs nothing, and each of its sessions takes memory."""
    session, _ = neighbours(tmp_path)
    arguments = json.loads(json.dumps({"parts": parts_to_json("", BY_CUT, None)}))
    (number,) = execute_call(session._mechanisms, LaunchMechanism("partition", "fine", arguments))
    partition = session._mechanisms.all()["fine"]
    node = node_of(number, (part,))
    for _ in range(2):
        if part == "nonsense":
            with pytest.raises(RequestError):
                session._mechanisms.at(node)
        else:
            assert session._mechanisms.at(node).core.account.root_node == node
    assert len(partition._sessions) == (part != "nonsense")
    others = [partition[key] for key in list(partition)[:20]]  # control: what a search through all parts would keep
    assert len(partition._sessions) == len(others)
    del others
    assert len(partition._sessions) == MOST_KEPT  # what nobody uses is made again when it is needed
    for key in list(partition):
        assert session._mechanisms.at(node_of(number, (key,))).core.account.root_node == node_of(number, (key,))
    assert len(partition._sessions) == MOST_KEPT
