"""A service whose limits of time and number are set: ``python hasty.py SETTINGS [--restored] NAME=VALUE ...``."""

from __future__ import annotations

import sys

from dpnb.__main__ import main
from dpnb.ledger import sqlite_file
from dpnb.service import app
from dpnb.service.network import connections, http

sqlite_file.SYNCHRONOUS = "OFF"  # no test of it cuts the power

if __name__ == "__main__":
    options = [one for one in sys.argv[2:] if one.startswith("--")]
    for setting in sys.argv[2 + len(options) :]:
        name, _, value = setting.partition("=")
        for module in (app, connections, http):  # in which it is defined, and which import it
            if hasattr(module, name):
                setattr(module, name, float(value) if "." in value else int(value))
    sys.exit(main(["serve", *options, sys.argv[1]]))
