"""``python -m dpnb serve`` and ``token``, as the command line calls them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from dpnb.errors import InvalidValueError
from dpnb.service.access.tokens import Role, new_token, now, read_tokens, revoke_tokens
from dpnb.service.configuration.settings import read_settings

LIBRARIES = ("starlette", "uvicorn", "pyrate_limiter", "prometheus_client", "httpx", "pyarrow")


def run_service(path: str, *, check_only: bool, restored: bool = False) -> tuple[str, int]:
    """Serve, or only check; returns the last words and the exit code.  `restored` is as for `serve`."""
    missing = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]
    if missing:
        raise InvalidValueError(
            f'serve: needs {" and ".join(missing)}, which are not installed; pip install "dpnb[serve]"'
        )
    from dpnb.service.server import check_service, serve  # only now, since the extra may be missing

    if check_only:
        return check_service(Path(path)), 0
    code = serve(
        Path(path),
        lambda url: _say(f"dpnb: serving at {url}; Ctrl-C stops"),
        lambda url: _say(f"dpnb: the curator's page is at {url}; log in with a token of a curator"),
        restored=restored,
    )
    return "dpnb: stopped", code


def make_token(path: str, name: str, expires: str | None, role: Role) -> tuple[str, int]:
    """Make a token; returns it with the instructions."""
    file, time = read_settings(path).tokens, now()
    token = new_token(file, name, expires, role)
    valid = sum(one.name == name and one.is_valid(time) for one in read_tokens(file))
    if valid > 1:
        sys.stderr.write(f"{name} has {valid} valid tokens now; python -m dpnb token revoke {name} takes all back.\n")
    sys.stderr.write(
        f"The token of {name}, which is not shown again. Send it to {name} as you would send a password. It is given "
        "in the environment variable DPNB_TOKEN or at the prompt of dpnb.connect, never in a notebook:\n"
    )
    return token, 0


def list_tokens(path: str) -> tuple[str, int]:
    """The tokens, without their hashes."""
    time = now()
    lines = [
        f"{one.name}, {one.role}: "
        + (
            f"revoked {one.revoked}"
            if one.revoked is not None
            else f"{'valid until' if one.is_valid(time) else 'expired'} {one.expires}"
            if one.expires is not None
            else "valid until it is revoked"
        )
        + f"; made {one.created}"
        for one in read_tokens(read_settings(path).tokens)
    ]
    return "\n".join(lines) or "no tokens; make one with python -m dpnb token new NAME", 0


def revoke(path: str, name: str) -> tuple[str, int]:
    """Revoke the tokens of an analyst."""
    number = revoke_tokens(read_settings(path).tokens, name)
    return f"revoked {number} {'token' if number == 1 else 'tokens'} of {name}; what was released stays recorded", 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
