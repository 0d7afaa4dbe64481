"""Figures for the curator's monitoring, in the text format of Prometheus, at the port of the cockpit.

Exact durations would undo the time grid, so no analyst and no auditor may read them.  There is no value, and no name of
an analyst.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from starlette.responses import Response

from dpnb.copying import NotCopyable
from dpnb.errors import DpnbError
from dpnb.render.numbers import format_percent_down

TEXT = "text/plain; version=0.0.4; charset=utf-8"
"""The media type of the format."""

UNIT = re.compile(r"( since unix epoch)?( in seconds| in bytes)?\.?$")
"""How the process's own figures name the units of their values."""

FOLLOWED = {
    "running": "Requests that run or wait",
    "executing_seconds": "Age of the request that is executed",
    "waiting": "Requests that wait for their turn",
    "queue_seconds": "Age of the request that waits longest",
    "held": "Charges that wait for the curator to let them run again",
    "streams": "Open streams of events",
    "stored_bytes": "Bytes of the rows of the person who has stored most",
    "disk_free_bytes": "Free on the disk of the ledger",
    "headroom": "Share of the budget that is left",
}
"""The figures that are read from the state of a table."""


class Metrics(NotCopyable):
    """The figures of a service; `registry` has all of them."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter("dpnb_requests", "Requests", ("table", "call", "outcome"), registry=self.registry)
        self._seconds = Histogram(
            "dpnb_request_seconds", "Duration of the execution", ("table", "call"), registry=self.registry
        )
        self.missed = Counter(
            "dpnb_missed_slots", "Slots of the time grid that replies missed", ("table",), registry=self.registry
        )
        self._limited = Counter("dpnb_limited", "Requests beyond a limit", ("limit",), registry=self.registry)
        self.refused_logins = Counter("dpnb_refused_logins", "Requests without a valid token", registry=self.registry)
        self.dropped = Counter(
            "dpnb_dropped", "Waiting requests of people who lost their access", ("table",), registry=self.registry
        )
        ProcessCollector(registry=self.registry)
        self.connections = Gauge("dpnb_connections", "Open connections", ("port",), registry=self.registry)
        self.closed_connections = Counter(
            "dpnb_closed_connections", "Connections closed for a limit", ("port", "limit"), registry=self.registry
        )
        self._followed = {
            name: Gauge(f"dpnb_{name}", words, ("table",), registry=self.registry) for name, words in FOLLOWED.items()
        }

    def executed(self, table: str, call: str, outcome: str, seconds: float) -> None:
        """Count a request that was executed."""
        self._requests.labels(table, call, outcome).inc()
        self._seconds.labels(table, call).observe(seconds)

    def limited(self, limit: str) -> None:
        """Count a request beyond a limit."""
        self._limited.labels(limit).inc()

    def follow(self, table: str, reads: Mapping[str, Callable[[], float]]) -> None:
        """Read the state of a table and of its queue, by the names in `FOLLOWED`, whenever the figures are read.

        A figure that cannot be read, for example of a ledger that was replaced, is NaN, and hides no other one.
        """
        for name, gauge in self._followed.items():
            gauge.labels(table).set_function(partial(_figure, reads[name]))

    async def reply(self, *_: object) -> Response:
        """All figures as they are now; reads ledgers, in another thread."""
        return Response(await asyncio.to_thread(generate_latest, self.registry), headers={"Content-Type": TEXT})

    def in_words(self, table: str) -> list[tuple[str, str]]:
        """The figures of a table and of the process, to be read by a person; without the numbers of a histogram."""
        shown = []
        for family in self.registry.collect():
            for sample in family.samples:
                labels = dict(sample.labels)
                if labels.pop("table", table) == table and not sample.name.endswith(("_bucket", "_count", "_created")):
                    of = "".join(f", {value}" for value in labels.values())
                    words = (
                        UNIT.sub("", family.documentation) + of + (", in total" if family.type == "histogram" else "")
                    )
                    shown.append((words, _in_words(sample.name, sample.value)))
        return shown

    def forget(self, table: str) -> None:
        """Read the state of a table no longer: its ledger is closed."""
        for gauge in self._followed.values():
            gauge.remove(table)


def _in_words(name: str, value: float) -> str:
    """A figure with its unit, which its name has."""
    if not math.isfinite(value):
        return "unknown"
    if name.endswith("_start_time_seconds"):
        return datetime.fromtimestamp(value, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    if "_bytes" in name:
        return f"{value / 1e6:,.1f} MB"
    if name.endswith("headroom"):
        return format_percent_down(value)
    return f"{value:,.3f} s" if "_seconds" in name else f"{value:,.0f}"


def _figure(read: Callable[[], float]) -> float:
    try:
        return read()
    except (DpnbError, OSError):
        return math.nan
