"""Cumulative counts over a service are those of a local session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpnb.errors import RequestError
from remote.people import connected, people


def test_a_remote_session_counts_cumulatively_as_a_local_one(tmp_path: Path) -> None:
    with connected(people(), tmp_path) as (remote, service):
        shown: list[list[Any]] = []
        for session in (people(), remote):
            query = session.frame.groupby("ward").size().cumsum()
            answers = [query.release(within=60), query.release(mu=0.2)]
            shown.append([*(str(answer.to_pandas()) for answer in answers), str(session.spent)])
            with pytest.raises(RequestError, match="without groups="):
                query.release(mu=0.3, groups=["north"])
        assert shown[0] == shown[1]
        assert service.executed


def test_a_remote_session_estimates_survival_as_a_local_one(tmp_path: Path) -> None:
    with connected(people(), tmp_path) as (remote, service):
        shown = []
        for session in (people(), remote):
            frame = session.frame
            query = frame.survival("age", frame["ward"] == "north", periods=5)
            answer = query.release(mu=0.2)
            assert query.release(mu=0.2, confidence=0.9).cost == answer.cost
            shown.append([str(answer.to_frame()), str(answer.median()), str(session.spent)])
        assert shown[0] == shown[1]
        assert service.executed
