"""The figures for Prometheus: who may read them, and that they are what Prometheus reads."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from dpnb.errors import LedgerError
from dpnb.service.access import tokens
from dpnb.service.access.tokens import Role, new_token
from dpnb.service.monitoring import FOLLOWED, Metrics
from dpnb.service.served import Rules
from service.cockpits import ORIGIN, Opened, built, run_cockpit
from service.served import run_in_loop

__all__ = ["built"]
pytestmark = pytest.mark.usefixtures("built")

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "serve.md"


def job() -> dict[str, object]:
    """The scrape job of the guide."""
    (text,) = re.findall(r"^```text\n(scrape_configs:.*?)^```", GUIDE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    (one,) = yaml.safe_load(text)["scrape_configs"]
    return dict(one)


async def scraped(opened: Opened, token: str, path: str = "/metrics") -> dict[tuple[str, str], Sample]:
    """What Prometheus reads, by name and labels."""
    client = opened.browser("eve", "curator").client
    reply = await client.get(path, headers={"Authorization": f"Bearer {token}", "Accept-Encoding": "gzip"})
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    samples = [one for family in text_string_to_metric_families(reply.text) for one in family.samples]
    return {(one.name, " ".join(one.labels.values())): one for one in samples}


def test_prometheus_reads_the_figures_with_a_token_of_their_own(tmp_path: Path) -> None:
    metrics, configured = Metrics(), job()
    assert configured["static_configs"] == [{"targets": [ORIGIN.replace("http://localhost", "127.0.0.1")]}]
    assert configured["authorization"] == {"type": "Bearer", "credentials_file": "/etc/prometheus/dpnb-token"}
    assert configured.get("metrics_path", "/metrics") == "/metrics"  # its default

    async def scenario(opened: Opened) -> None:
        served = opened.served
        token = new_token(served.tokens, "prometheus", role="monitor")
        assert (await served.post(served.count("a"))).status_code == 200
        assert (await served.post(served.count("b", mu="1000"))).status_code == 422
        assert (await served.client.get("/v3/tables")).status_code == 401
        assert (await served.get("/metrics")).status_code == 404  # where analysts connect
        found = await scraped(opened, token)
        assert found["dpnb_requests_total", "release 200 people"].value == 1
        assert found["dpnb_requests_total", "release 422 people"].value == 1
        assert found["dpnb_request_seconds_count", "release people"].value == 2
        assert found["dpnb_refused_logins_total", ""].value == 1
        assert 0.9 < found["dpnb_headroom", "people"].value < 1
        assert not [one for one in found.values() if {"ana", "prometheus"} & {*one.labels.values()}]
        await served.service.remove("people")  # and what is read of its ledger with it
        assert ("dpnb_headroom", "people") not in await scraped(opened, token)

    run_cockpit(tmp_path, scenario, rules=Rules(metrics=metrics))


@pytest.mark.parametrize("role", tokens.ROLES)
def test_exact_durations_are_for_curators_and_their_monitor(role: Role, tmp_path: Path) -> None:
    async def scenario(opened: Opened) -> None:
        client, token = opened.browser("eve", "curator").client, new_token(opened.served.tokens, "sam", role=role)
        headers = {"Authorization": f"Bearer {token}"}
        reply = await client.get("/metrics", headers=headers)
        assert (reply.status_code == 200) == (role in ("monitor", "curator", "owner"))
        assert ("dpnb_request_seconds" in reply.text) == (reply.status_code == 200)
        for other in ({}, {"Authorization": "Bearer dpnb_x"}):
            assert (await client.get("/metrics", headers=other)).status_code == 401
        foreign = await client.get("/metrics", headers={**headers, "Host": "evil.example"})
        assert foreign.status_code == 403  # a web page under another name that resolves to this address
        if role == "monitor":  # and nothing else
            for path in ("/v3/tables", "/v3/tables/people/audit", "/v3/tables/people/state"):
                assert (await opened.served.client.get(path, headers=headers)).status_code == 403
        assert await asyncio.to_thread(tokens.revoke_tokens, opened.served.tokens, "sam") == 1
        assert (await client.get("/metrics", headers=headers)).status_code == 401

    run_cockpit(tmp_path, scenario)


def test_a_ledger_that_cannot_be_read_hides_no_figure_of_another_table() -> None:
    def lost() -> float:
        raise LedgerError("ledger: was replaced")

    metrics = Metrics()
    for table, read in (("lost", lost), ("people", lambda: 0.5)):
        metrics.follow(table, dict.fromkeys(FOLLOWED, read))
    text = bytes(run_in_loop(metrics.reply()).body).decode()
    assert 'dpnb_headroom{table="lost"} NaN' in text
    assert 'dpnb_headroom{table="people"} 0.5' in text
