"""Figures for the curator's monitoring, in the text format of Prometheus, on a socket of the curator's alone.

Exact durations would undo the time grid, so analysts must not read them.  There is no value, and no name of an analyst.
"""

from __future__ import annotations

import os
import socketserver
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, make_wsgi_app

from dpnb.copying import NotCopyable
from dpnb.service.configuration.ports import SocketAddress, listen

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
        """Read the state of a table and of its queue, by the names in `FOLLOWED`, whenever the figures are read."""
        for name, gauge in self._followed.items():
            gauge.labels(table).set_function(reads[name])

    def forget(self, table: str) -> None:
        """Read the state of a table no longer: its ledger is closed."""
        for gauge in self._followed.values():
            gauge.remove(table)


class MetricsServer(NotCopyable):
    """Serves the figures on a Unix socket that its owner alone can open."""

    def __init__(self, path: Path, metrics: Metrics) -> None:
        self._listening = listen(SocketAddress(path))
        os.chmod(path, 0o600)
        self._server = _UnixServer(("", 0), _Handler, bind_and_activate=False)
        self._server.socket.close()
        self._server.socket = self._listening.socket
        self._server.set_environ()
        self._server.set_app(make_wsgi_app(metrics.registry))
        self._thread = threading.Thread(target=self._server.serve_forever, name="dpnb-metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop, and remove the socket."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._listening.remove()


class _UnixServer(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def set_environ(self) -> None:
        """What `server_bind` would set for a port."""
        self.server_name, self.server_port = "metrics", 0
        self.setup_environ()


class _Handler(WSGIRequestHandler):
    def address_string(self) -> str:  # a Unix socket has no address of the client
        return "local"

    def get_environ(self) -> dict[str, Any]:
        self.client_address = ("local", 0)
        return super().get_environ()

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the figures are read every few seconds."""
