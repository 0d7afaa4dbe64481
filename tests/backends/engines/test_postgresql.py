"""Tables of PostgreSQL through Ibis."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import databases
from backends.engines.database_tables import DatabaseContract, PostgreSQLTables
from contracts import texts_and_dates
from dpnb._backends.lazy.engines.postgresql import PostgreSQL

pytestmark = [pytest.mark.databases, pytest.mark.slow]


class TestPostgreSQL(DatabaseContract):
    engine = PostgreSQL

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _server(cls, postgresql: databases.Server) -> Iterator[None]:
        cls.tables = PostgreSQLTables(postgresql)
        yield
        cls.tables.close()

    def test_texts_and_dates_give_the_same_integers(self) -> None:
        """It has no texts with a null byte."""
        table = texts_and_dates.TABLE
        texts = [name for name in table if table[name].dtype.kind == "O"]
        without = table.assign(**{name: table[name].str.replace("\0", "\1") for name in texts})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(texts_and_dates, "TABLE", without)
            patch.delitem(texts_and_dates.QUESTIONS, "contains a null byte")
            super().test_texts_and_dates_give_the_same_integers()
