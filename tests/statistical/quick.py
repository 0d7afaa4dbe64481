"""Real sessions, many a second: what is the same for all of them is worked out once, and nothing is shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import pytest

from dpnb._backends.memory.memory_backend import MemoryBackend
from dpnb._core.history.log import RequestLog
from dpnb._core.history.words import AnswerReader
from dpnb._core.releases import ReleasePipeline
from dpnb._core.tables import PrivateTables
from dpnb._plan.plan import Plan


@contextmanager
def prepared_once() -> Iterator[None]:
    """Prepare a table once for all sessions that are opened on it in a row.

    For tables that are told apart by identity, of which each always has the same schema and unit.
    """
    read, last = PrivateTables.read, []

    def read_once(tables: PrivateTables, unread: Any) -> None:
        given = [*unread.tables.values()]
        if not last or [*map(id, given)] != [*map(id, last[0])]:
            last.clear()  # before another one is prepared: they are large
            read(tables, unread)
            last[:] = given, tables._opened
        tables._opened = last[1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PrivateTables, "read", read_once)
        yield


@contextmanager
def compiled_once() -> Iterator[None]:
    """Compile a plan once for all sessions in a row that declare the same tables, whatever rows these have."""
    compile_, declared = PrivateTables.compile, ""
    compiled: dict[Any, Any] = {}
    of_tables: WeakKeyDictionary[PrivateTables, dict[Any, Any]] = WeakKeyDictionary()

    def compile_once(tables: PrivateTables, plan: Plan, only: Any = None) -> Any:
        nonlocal compiled, declared
        if tables not in of_tables:
            own = repr((tables.schemas, tables.units))
            compiled, declared = (compiled, declared) if own == declared else ({}, own)
            of_tables[tables] = compiled
        known, key = of_tables[tables], (plan.text, only, tables.clips_units)
        if key not in known:
            known[key] = compile_(tables, plan, only)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PrivateTables, "compile", compile_once)
        yield


@contextmanager
def summed_once() -> Iterator[None]:
    """Sum the rows of a table once for each compiled query, for sessions that share both."""
    sums = MemoryBackend.sums
    of_tables: WeakKeyDictionary[MemoryBackend, dict[int, Any]] = WeakKeyDictionary()

    def sum_once(table: MemoryBackend, query: Any, active: Any = None) -> Any:
        if active is not None:
            return sums(table, query, active)
        summed = of_tables.setdefault(table, {})
        if id(query) not in summed:
            summed[id(query)] = query, sums(table, query)  # the query is kept, so that its id is
        return summed[id(query)][1].copy()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryBackend, "sums", sum_once)
        yield


@contextmanager
def quick_sessions() -> Iterator[None]:
    """Prepare each table, compile each plan and sum it once; a release gives its row of the ledger, without a face.

    For sessions of one module, whose tables are told apart by identity and all have the same schema and unit.
    """
    read, prepared = PrivateTables.read, {}
    compile_, compiled = PrivateTables.compile, {}

    def read_once(tables: PrivateTables, unread: Any) -> None:
        key = tuple(map(id, unread.tables.values()))
        if key not in prepared:
            read(tables, unread)
        tables._opened = prepared.setdefault(key, tables._opened)

    def compile_once(tables: PrivateTables, plan: Plan, only: Any = None) -> Any:
        key = plan, only, tables.clips_units
        if key not in compiled:
            compiled[key] = compile_(tables, plan, only)
        return compiled[key]

    with summed_once(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(PrivateTables, "read", read_once)
        patch.setattr(PrivateTables, "compile", compile_once)
        patch.setattr(ReleasePipeline, "answer_of", lambda _, charge: charge)
        patch.setattr(RequestLog, "note_request", lambda *_: None)
        patch.setattr(AnswerReader, "words_to_store", lambda *_: None)
        yield
