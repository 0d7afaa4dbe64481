"""A service on a Unix socket, in a thread of this process, for tests of what connects to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dpnb
from dpnb.service.access.tokens import TokenStore
from dpnb.service.app import Service
from dpnb.service.configuration.parts import DivisionSettings
from dpnb.service.configuration.settings import TableSettings
from dpnb.service.opening import OpenTable
from unix_service import served


@contextmanager
def running(folder: Path, session: dpnb.Session, division: DivisionSettings) -> Iterator[tuple[str, Service]]:
    """A service with one table, ``people``; its address, and the service."""
    service = Service(TokenStore(folder / "tokens.json"))
    service.add(OpenTable(TableSettings("people", "here", division=division), session))
    with served(service.app(), folder / "s", service.end_streams) as address:
        yield address, service
