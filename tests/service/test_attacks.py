"""Attacks of an analyst who writes to the service without the session, and of another user of its machine."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

import dpnb
from dpnb._plan.expressions.nodes import Column, Cut
from dpnb._plan.plan import GroupLevel
from dpnb._request import DescendGradient, LaunchMechanism, PartitionTable
from dpnb.errors import DpnbError, RequestError
from dpnb.interactive import descent as options
from dpnb.interactive.calls import execute
from dpnb.interactive.sub_session import MOST_KEPT
from dpnb.ledger import node_of
from dpnb.ledger.shared_rows import SharedRows
from dpnb.service import server
from dpnb.wire.decoding import decode_envelope, encode_envelope
from dpnb.wire.messages import Envelope
from service.bodies import ROWS, session_of
from service.test_process import Curator, count

HUGE = str(10**310)
"""A number that can be sent, and is no double."""


def fit_launch(session: dpnb.Session) -> DescendGradient:
    """The launch of a gradient descent, as the ledger stores it."""
    df = session.frame
    df.fit("x", on=["k", "g"], family="linear", mu=0.05, steps=3, clip_norm=1.0, public_size=7, name="fit")
    (launch,) = session._core.account.tree.sync().values()
    assert isinstance(launch.mechanism, DescendGradient)
    return launch.mechanism


def launched(session: dpnb.Session, name: str, mechanism: DescendGradient, **changes: Any) -> None:
    """Execute the launch that a client sends, with other fields."""
    body = json.loads(encode_envelope(Envelope("a", LaunchMechanism(name, mechanism))))
    body["request"]["mechanism"].update(changes)
    execute(session._mechanisms, decode_envelope(json.dumps(body).encode()).request)


CHANGES: list[dict[str, Any]] = [
    {"learning_rate": HUGE},
    {"learning_rate": f"1/{HUGE}"},
    {"learning_rate": "9" * 9000},
    {"learning_rate": "0x" + "f" * 9000},
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
    {"rows": {"aggregation": {"of": "count"}, "source": {"type": "join", "left": "", "right": ""}}},
    {"model": {"family": "linear", "outcome": {"op": "column", "name": "who"}, "columns": [], "categories": []}},
    {"public_size": 0},
    {"noise_token": 1},
]


@pytest.fixture(scope="module")
def fitting(tmp_path_factory: pytest.TempPathFactory) -> tuple[dpnb.Session, Any]:
    """A session with a launch of a gradient descent, and that launch."""
    session = session_of(ROWS, tmp_path_factory.mktemp("fitting"), "with")
    mechanism = fit_launch(session)
    launched(session, "same", mechanism)
    assert session.ledger.count == 2  # control: the unchanged arguments are launched
    return session, mechanism


@pytest.mark.parametrize("changes", CHANGES, ids=lambda one: "-".join(one))
def test_a_gradient_descent_with_other_arguments_is_refused(
    changes: dict[str, Any], fitting: tuple[dpnb.Session, Any]
) -> None:
    session, mechanism = fitting
    with pytest.raises(DpnbError) as error:
        launched(session, "other", mechanism, **changes)
    assert session.ledger.count == 2
    assert len(str(error.value)) < 1000


def test_an_infinite_learning_rate_would_be_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control of the above: a row of the ledger that is no JSON."""
    session = session_of(ROWS, tmp_path, "with")
    mechanism = fit_launch(session)
    monkeypatch.setattr(options, "MAX_RATE", float("inf"))
    launched(session, "other", mechanism, learning_rate=HUGE)
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


FINE = 500
EDGES = tuple(-3 + 11 * place / FINE for place in range(FINE + 1))
BY_CUT = GroupLevel("c", Cut(Column("x"), EDGES, tuple(f"l{number}" for number in range(FINE))))


@pytest.mark.parametrize("part", ["nonsense", f"l{FINE - 1}"])
def test_a_request_to_a_part_makes_no_session_of_another_part(part: str, tmp_path: Path) -> None:
    """A partition costs nothing, and each of its sessions takes memory."""
    session = session_of(ROWS, tmp_path, "with")
    (number,) = execute(session._mechanisms, LaunchMechanism("fine", PartitionTable("", BY_CUT)))
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
