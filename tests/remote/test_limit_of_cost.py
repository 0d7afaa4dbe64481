"""The service refuses a release that costs more than the remote session displayed; see `Conditions.at_most`."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpnb._request import Conditions, Release
from dpnb._target import target_from
from dpnb.errors import CostIncreased
from remote.people import connected, people

pytestmark = pytest.mark.slow


def test_the_service_refuses_what_costs_more_than_was_displayed(tmp_path: Path) -> None:
    with connected(people(), tmp_path) as (remote, service):
        query, releases, ledger = remote.frame["age"].mean(), remote._core.releases, service.sessions["people"].ledger
        request = Release(query.plan, query.view, target_from(mu="1/30"))
        cost = query.preview(mu="1/30").cost.mu_squared
        less: list[Any] = [cost / 2, Fraction(0), cost - Fraction(1, 10**25)]
        for limit in less:
            with pytest.raises(CostIncreased, match="preview again"):
                releases.release(request, Conditions(at_most=limit))
        assert ledger.count == 0
        assert releases.release(request, Conditions(at_most=cost)).cost.mu_squared == cost
        again = releases.release(request, Conditions(at_most=Fraction(0)))
        assert again.cost.mu_squared == cost
        assert ledger.count == 1


def test_the_service_refuses_a_batch_that_costs_more_than_was_displayed(tmp_path: Path) -> None:
    with connected(people(), tmp_path) as (remote, service):
        batches, queries = remote._core.batches, [remote.frame["age"].mean(), remote.frame.count()]
        planned = batches.plan([(query.plan, query.view) for query in queries])
        targets = (target_from(mu="1/30"),) * 2
        cost = batches.preview(planned, targets).cost.mu_squared
        with pytest.raises(CostIncreased, match="preview again"):
            remote._core.executor.run(planned.request(targets), Conditions(at_most=cost / 2))
        assert service.sessions["people"].ledger.count == 0
        remote._core.executor.run(planned.request(targets), Conditions(at_most=cost))
        assert batches.release(planned, targets).cost.mu_squared <= cost
