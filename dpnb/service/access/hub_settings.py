"""The settings of a service behind JupyterHub (the key ``prefix``, the table ``[jupyterhub]``), and loopback hosts."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from dpnb.errors import InvalidValueError
from dpnb.session.toml_file import TomlFile

# --- hosts on the loopback --------------------------------------------------------------------------------------------


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# --- the settings of a service behind JupyterHub ----------------------------------------------------------------------


HUB_KEYS = {"api_url": True, "service": False}
DEFAULT_SERVICE = "dpnb"
SERVICE = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
"""The name of a service in JupyterHub, as a scope and an address may contain it."""

PREFIX = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+", re.ASCII)
LONGEST_PREFIX = 200


@dataclass(frozen=True)
class HubSettings:
    """The JupyterHub whose users may connect."""

    api_url: str  # without a final slash
    service: str = DEFAULT_SERVICE  # the name under which the Hub has the service

    @property
    def access_scope(self) -> str:
        """The scope of a token that may connect."""
        return f"access:services!service={self.service}"

    @property
    def curator_scope(self) -> str:
        """The scope of a curator's token, beside the other."""
        return f"custom:{self.service}:curate"


def read_hub(file: TomlFile) -> HubSettings | None:
    """Read the table ``[jupyterhub]``; None if the file has none."""
    if "jupyterhub" not in file.content:
        return None
    entry = file.content["jupyterhub"]
    if not isinstance(entry, dict):
        raise file.fault(
            InvalidValueError, ("jupyterhub",), f"jupyterhub: must be a table; got {entry!r}; write [jupyterhub]"
        )
    file.refuse_keys(entry, HUB_KEYS, ("jupyterhub",))
    api_url, service = entry["api_url"], entry.get("service", DEFAULT_SERVICE)
    fault = _fault_of(api_url)
    if fault:
        raise file.fault(
            InvalidValueError,
            ("jupyterhub", "api_url"),
            f"api_url: must be the address of the Hub's API, to which the tokens of users are sent; {fault}; "
            "for example 'http://127.0.0.1:8081/hub/api' on the machine of the Hub, or 'https://hub.example.org/hub/api'",
        )
    if not isinstance(service, str) or SERVICE.fullmatch(service) is None:
        raise file.fault(
            InvalidValueError,
            ("jupyterhub", "service"),
            "service: must be the name of the service in jupyterhub_config.py, of small letters, digits, '-' and '_'; "
            f"got {service!r}; for example 'dpnb'",
        )
    return HubSettings(api_url.rstrip("/"), service)


def _fault_of(api_url: Any) -> str:
    """Why tokens cannot be sent to an address; empty if they can."""
    try:
        parts = urlsplit(api_url) if isinstance(api_url, str) and api_url.isprintable() else None
        port = None if parts is None else parts.port  # raises for what is no port
    except ValueError:
        parts = port = None
    if parts is None or not parts.hostname or port == 0:
        return "it is no address"
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        return "it has a user name, a password, a query or a fragment"
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname)):
        return "plain http to another machine would show the tokens to the network"
    return ""


def read_prefix(file: TomlFile) -> str:
    """Read the key ``prefix``; empty if the file has none."""
    value = file.content.get("prefix", "")
    is_path = isinstance(value, str) and PREFIX.fullmatch(value) is not None and len(value) <= LONGEST_PREFIX
    if "prefix" in file.content and not is_path:
        raise file.fault(
            InvalidValueError,
            ("prefix",),
            "prefix: must be the path under which a proxy forwards requests, with a slash at the beginning and none at "
            f"the end; got {value!r}; for example '/services/dpnb'",
        )
    return str(value)
