"""Serve the RAND table to notebooks on this machine, and its cockpit to a browser: ``make serve``.

The settings, the ledger, the tokens and the log are in ``.dpnb-service`` in the clone. They are kept, so that a budget
that was spent stays spent; each start makes new tokens and revokes the earlier ones. To try the protection itself, run
it as another user than the notebooks: here both are yours.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
import tempfile
from pathlib import Path

from dpnb.__main__ import main as command
from dpnb.errors import DpnbError
from dpnb.service.access.tokens import Role, new_token, read_tokens, revoke_tokens
from dpnb.service.configuration.ports import LONGEST_PATH
from dpnb.service.configuration.settings import read_settings

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".dpnb-service"
ANALYST, CURATOR = "ana", "carl"
COCKPIT_PORT = 8444


def socket_path() -> Path:
    """The path of the socket: in the folder, unless the operating system does not allow one that long."""
    path = FOLDER / "run" / "dpnb.sock"
    if len(os.fsencode(path)) <= LONGEST_PATH:
        return path
    return Path(tempfile.gettempdir(), f"dpnb-{os.getuid()}", "dpnb.sock")


def prepare() -> Path:
    """Write the settings; the path of their file."""
    import statsmodels

    FOLDER.mkdir(mode=0o700, exist_ok=True)
    shutil.copyfile(ROOT / "examples" / "rand-hie.toml", FOLDER / "rand-hie.toml")
    data = Path(statsmodels.__file__).parent / "datasets" / "randhie" / "src" / "randhie.csv"
    settings = FOLDER / "curator.toml"
    settings.write_text(
        f"socket = {json.dumps(str(socket_path()))}\n"
        'tokens = "tokens.json"\nheads = "heads"\nlog = "service.log"\n\n'
        f"[cockpit]\nport = {free_port()}\n\n"
        f'[tables.rand-hie]\ndeclaration = "rand-hie.toml"\ndata = {json.dumps(str(data))}\n'
        f"[tables.rand-hie.analysts.{ANALYST}]\ncap = {{ share = 0.25 }}\n",
        encoding="utf-8",
    )
    return settings


def free_port() -> int:
    """The port of the cockpit: the usual one, or another if it is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", COCKPIT_PORT))
        except OSError:
            return 0
        return COCKPIT_PORT


def fresh_token(tokens: Path, name: str, role: Role) -> str:
    """A new token of a person, whose earlier ones are revoked."""
    if any(one.name == name and one.revoked is None for one in read_tokens(tokens)):
        revoke_tokens(tokens, name)
    return new_token(tokens, name, role=role)


def main() -> int:
    """Serve until Ctrl-C."""
    path = prepare()
    try:
        settings = read_settings(path)
        analyst, curator = (
            fresh_token(settings.tokens, name, role) for name, role in ((ANALYST, "analyst"), (CURATOR, "curator"))
        )
        print(
            "In a notebook, for example of `make lab` in another terminal:\n\n"
            "    %load_ext dpnb\n"
            "    import dpnb\n"
            f'    session = dpnb.connect("{settings.address.url}", table="rand-hie")\n\n'
            f"It asks for the access token of the analyst, {ANALYST}, which is new at each start:\n\n    {analyst}\n\n"
            f"{ANALYST} has a quarter of the budget; session.request_budget(...) asks the curator for more.\n"
            f"The address of the curator's page is printed below. Log in there as {CURATOR}, with\n\n"
            f"    {curator}\n\n"
            f"The ledger is {FOLDER / 'rand-hie.dpnb'},\nand the log is {FOLDER / 'service.log'}.\n",
            flush=True,
        )
    except DpnbError as error:
        sys.exit(f"make serve: {error}")
    is_older = (FOLDER / "rand-hie.dpnb").exists() and not settings.heads.exists()  # of a version that kept no last row
    return command(["serve", str(path), *(["--restored"] if is_older else [])])


if __name__ == "__main__":
    sys.exit(main())
