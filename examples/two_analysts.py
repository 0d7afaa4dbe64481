"""Plays the curator in the notebook 08-service: serves the RAND table to Ana and Bob until it is stopped.

``python two_analysts.py FOLDER`` writes the table and its declarations into a folder that has a ``curator.toml``, makes
the tokens, prints them with the address as one line of JSON, and serves.  A curator does the same in a terminal, with
``python -m dpnb token`` and ``python -m dpnb serve``: these commands refuse to be started from a notebook, since an
analyst who starts a process can read its memory.  Here the table is public.
"""

from __future__ import annotations

import json
import sys
from importlib.resources import files
from pathlib import Path

from dpnb.service.access.tokens import new_token
from dpnb.service.server import serve

HERE = Path(__file__).parent
DATA = files("statsmodels") / "datasets" / "randhie" / "src" / "randhie.csv"
ANALYSTS = ("ana", "bob")


def main(folder: Path) -> int:
    """Serve the tables that the settings in the folder name."""
    declaration = (HERE / "rand-hie.toml").read_text(encoding="utf-8")
    for name in ("reserved", "pooled"):  # a ledger for each
        text = declaration.replace('name = "rand-hie"', f'name = "{name}"')
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    (folder / "randhie.csv").write_bytes(DATA.read_bytes())
    (folder / "tokens.json").unlink(missing_ok=True)  # of an earlier run
    tokens = {name: new_token(folder / "tokens.json", name) for name in ANALYSTS}
    return serve(folder / "curator.toml", lambda url: print(json.dumps({"address": url, **tokens}), flush=True))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
