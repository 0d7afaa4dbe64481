"""Serve the RAND table to notebooks on this machine: ``make serve``.

The settings, the ledger, the token and the log are in ``.dpnb-service`` in the clone. They are kept, so that a budget
that was spent stays spent; each start makes a new token and revokes the earlier ones. To try the protection itself, run
it as another user than the notebooks: here both are yours.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from dpnb.__main__ import main as command
from dpnb.errors import DpnbError
from dpnb.service.settings import LONGEST_PATH, read_settings
from dpnb.service.tokens import new_token, read_tokens, revoke_tokens

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".dpnb-service"
ANALYST = "analyst"


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
        'tokens = "tokens.json"\nlog = "service.log"\n\n'
        f'[tables.rand-hie]\ndeclaration = "rand-hie.toml"\ndata = {json.dumps(str(data))}\n',
        encoding="utf-8",
    )
    return settings


def main() -> int:
    """Serve until Ctrl-C."""
    path = prepare()
    try:
        settings = read_settings(path)
        if any(one.name == ANALYST and one.revoked is None for one in read_tokens(settings.tokens)):
            revoke_tokens(settings.tokens, ANALYST)
        token = new_token(settings.tokens, ANALYST)
        print(
            "In a notebook, for example of `make lab` in another terminal:\n\n"
            "    %load_ext dpnb\n"
            "    import dpnb\n"
            f'    session = dpnb.connect("{settings.address.url}", table="rand-hie")\n\n'
            f"It asks for the access token, which is new at each start:\n\n    {token}\n\n"
            f"The log is {FOLDER / 'service.log'}.\n",
            flush=True,
        )
    except DpnbError as error:
        sys.exit(f"make serve: {error}")
    return command(["serve", str(path)])


if __name__ == "__main__":
    sys.exit(main())
