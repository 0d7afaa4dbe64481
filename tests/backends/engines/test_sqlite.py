"""Tables of SQLite through Ibis."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from backends.engines.database_tables import DatabaseContract, SQLiteTables
from dpnb._backends.lazy.engines.sqlite import SQLite

pytestmark = pytest.mark.slow


class TestSQLite(DatabaseContract):
    engine = SQLite

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _file(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
        cls.tables = SQLiteTables(tmp_path_factory.mktemp("sqlite") / "tables.sqlite")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SQLite, "files", lambda self, native: list)  # all tests write tables into one file
            yield
        cls.tables.close()
