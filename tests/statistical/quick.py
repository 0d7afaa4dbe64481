"""Real sessions, many a second: what is the same for all of them is worked out once, and nothing is shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest

from dpnb.query.plan import Plan
from dpnb.session.comparison import Comparison
from dpnb.session.log import Log
from dpnb.session.releases import Releases
from dpnb.session.tables import Tables


@contextmanager
def quick_sessions() -> Iterator[None]:
    """Prepare each table and compile each plan once, and let a release give its row of the ledger, without a face.

    For sessions of one module, whose tables are told apart by identity and all have the same schema and unit.
    """
    read, prepared = Tables.read, {}
    compile_, compiled = Tables.compile, {}

    def read_once(tables: Tables, unread: Any) -> None:
        key = tuple(map(id, unread.tables.values()))
        if key not in prepared:
            read(tables, unread)
        tables._opened = prepared.setdefault(key, tables._opened)

    def compile_once(tables: Tables, plan: Plan, only: Any = None) -> Any:
        key = plan, only, tables.divisible
        if key not in compiled:
            compiled[key] = compile_(tables, plan, only)
        return compiled[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tables, "read", read_once)
        patch.setattr(Tables, "compile", compile_once)
        patch.setattr(Releases, "answer_of", lambda _, charge: charge)
        patch.setattr(Log, "asked", lambda *_: None)
        patch.setattr(Comparison, "before_anything", cache(Comparison.before_anything))
        yield
