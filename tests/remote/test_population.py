"""Population intervals over a service are those of a local session, and are charged there alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpnb.accounting import GDP
from dpnb.errors import PlanError, RequestError
from remote.people import connected, people


def test_a_remote_session_measures_sampling_errors_as_a_local_one(tmp_path: Path) -> None:
    local = people(sampled=0.25)
    with connected(people(sampled=0.25), tmp_path) as (remote, service):
        assert remote.sampled == local.sampled == 0.25
        shown: list[list[Any]] = []
        for session in (local, remote):
            frame = session.frame
            free = frame.groupby("ward").size().release(mu=0.1)
            joint = frame["cost"].mean(population=True).release(mu=0.1)
            later = frame.groupby("ward")["cost"].mean().release(mu=0.2)
            measured = later.population(mu=0.05)
            assert measured.cost == GDP("0.05")
            verdict = measured["north"] > measured["south"]
            assert verdict.scope == "in the population"
            spent = session.spent
            again = later.population(mu=0.05).refine(mu=0.25)
            answers = [free, joint, measured, again, frame["age"].sem().release(mu=0.05)]
            shown.append([[str(answer.to_pandas()) for answer in answers], verdict.outcome, str(session.spent)])
            assert again.has_population_intervals
            assert session.spent.mu_squared > spent.mu_squared
        assert shown[0] == shown[1]
        with pytest.raises(PlanError, match="already"):
            joint.population(mu=0.01)
        with pytest.raises(RequestError, match="not known"):
            later.population_interval  # noqa: B018
        assert service.executed
