"""A session on a table of people with seeded noise, locally and through a small service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

import dpnb
from dpnb.ledger import MEMORY
from dpnb.remote import RemoteSession
from remote.small_service import TOKEN, SmallService

TABLE = pd.DataFrame(
    {
        "person": [index // 2 for index in range(400)],
        "age": [18 + (index * 7) % 80 for index in range(400)],
        "cost": [float((index * 37) % 500) for index in range(400)],
        "plan": [("free", "basic", "full")[index % 3] for index in range(400)],
        "ward": [("north", "south")[index % 2] for index in range(400)],
        "town": [f"town {index % 4}" for index in range(400)],
    }
)
SCHEMA = {
    "age": dpnb.Bounded(18, 98),
    "cost": dpnb.Bounded(0, 500),
    "plan": dpnb.Categories(["free", "basic", "full"]),
    "ward": dpnb.Categories(["north", "south"]),
    "town": dpnb.Text(),
}


def people(**options: Any) -> dpnb.Session:
    given = {
        "name": "people",
        "budget": dpnb.Budget(epsilon=2, delta=1e-5, discovery_delta=1e-6),
        "schema": SCHEMA,
        "privacy_unit": "person",
        "max_rows_per_unit": 2,
        "public_size": 200,
        "ledger": MEMORY,
        "not_private_test_seed": 7,
    }
    return dpnb.Session(TABLE, **{**given, **options})


@contextmanager
def connected(session: dpnb.Session, folder: Path) -> Iterator[tuple[RemoteSession, SmallService]]:
    """A remote session on a session, and its service."""
    service = SmallService({session.name: session})
    with service.served(folder / "s") as address:
        remote = dpnb.connect(address, session.name, token=TOKEN)
        try:
            yield remote, service
        finally:
            remote.close()
