"""A service whose limits of time and number are set."""

from __future__ import annotations

from dpnb.__main__ import main
from dpnb.ledger import sqlite_file
from dpnb.service import app
from dpnb.service.network import connections, http

sqlite_file.SYNCHRONOUS = "OFF"  # no test of it cuts the power


def serve_hastily(settings: str, *given: str) -> int:
    """Serve with options, as ``--restored``, and limits, as ``HEAD_SECONDS=1``."""
    options = [one for one in given if one.startswith("--")]
    for limit in given[len(options) :]:
        name, _, value = limit.partition("=")
        for module in (app, connections, http):  # in which it is defined, and which import it
            if hasattr(module, name):
                setattr(module, name, float(value) if "." in value else int(value))
    return main(["serve", *options, settings])
