"""A service whose curator extends the declaration of a table, and starts it again."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpnb
from dpnb._sources.source import DataSource
from dpnb.curator.audit import audit
from dpnb.errors import LedgerError, LedgerReplaced, SchemaError
from dpnb.ledger.charge import TABLE_FILES, VERSION
from dpnb.service.configuration.parts import AmountSettings, DivisionSettings, PartSettings
from dpnb.service.configuration.settings import DataSetting, TableSettings
from dpnb.service.curation.rows import audit_page
from dpnb.service.opening import OpenTable, open_table

ROWS = pd.DataFrame({"who": [1, 1, 2, 3], "age": [20.0, 20.0, 30.0, 40.0], "cost": [1.0, 2.0, 3.0, 4.0]})
BEGIN = (
    'name = "people"\nbudget = { epsilon = 1.0, delta = 1e-6 }\nprivacy_unit = "who"\nmax_rows_per_unit = 1\n[schema]\n'
)
AGE = 'age = { type = "bounded", low = 0, high = 100 }\n'
COST = 'cost = { type = "bounded", low = 0, high = 10 }\n'
HALF = AmountSettings(Fraction(1, 2))
RESERVED = DivisionSettings("reserved", tuple(PartSettings("analyst", name, ceiling=HALF) for name in ("ana", "bob")))


@pytest.fixture(params=["people.parquet", "people.csv"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    file = tmp_path / request.param
    ROWS.to_parquet(file) if file.suffix == ".parquet" else ROWS.to_csv(file, index=False)
    opened: list[OpenTable] = []

    def start(schema: str, begin: str = BEGIN, **changes: Any) -> OpenTable:
        while opened:
            opened.pop().close()
        declaration = tmp_path / "people.toml"
        declaration.write_text(begin + schema, "utf-8")
        settings = TableSettings(
            "people", "here", declaration=declaration, data=DataSetting(DataSource(str(file))), **changes
        )
        opened.append(open_table(settings, tmp_path / "heads"))
        return opened[-1]

    yield start
    while opened:
        opened.pop().close()


def rows(table: OpenTable) -> list[str]:
    return [row.kind for row in table.session.ledger.charges()]


def test_a_new_column_is_there_after_a_restart(served: Any) -> None:
    served(AGE, division=RESERVED).for_analyst("ana").session.frame["age"].mean().release(mu=0.01)
    before = rows(served(AGE, division=RESERVED))
    table = served(AGE + COST, division=RESERVED)
    assert rows(table) == [*before, VERSION]
    ana, bob = table.for_analyst("ana"), table.for_analyst("bob")
    bob.session.frame["cost"].mean().release(mu=0.01)
    assert [one.rows.count for one in (ana, bob)] == [1, 1]
    assert list(table.session.schema) == list(ana.session.schema) == ["age", "cost"]
    assert rows(served(AGE + COST, division=RESERVED)) == [*before, VERSION, "release"]
    table = served(AGE + COST, division=RESERVED)
    assert "declaration of the table for version '1'" in [row.words for row in audit_page(table, 0, 100).rows]
    found = audit(table.session.ledger.path).problems  # the tests charge without a request to the service
    assert all(one.endswith("by a local session.") for one in found)


def test_a_column_may_be_taken_back(served: Any) -> None:
    served(AGE).session.frame["age"].mean().release(mu=0.01)
    served(AGE + COST).session.frame["cost"].mean().release(mu=0.01)
    table = served(AGE)
    assert list(table.session.schema) == ["age"]
    assert table.for_analyst("ana").description.columns == (("", ("age",)),)
    table.session.frame["age"].sum().release(mu=0.01)


def test_before_the_first_request_a_bound_is_corrected(served: Any) -> None:
    """The budget is divided and the files of the table are recorded by then."""
    table = served(AGE, division=RESERVED)
    ana = table.for_analyst("ana")
    head = ana.rows.head(ana.rows.count)
    table = served(AGE.replace("100", "90"), division=RESERVED)
    assert {TABLE_FILES, "grant", VERSION} == {*rows(table)}
    with pytest.raises(LedgerReplaced, match="connect again"):
        table.for_analyst("ana").rows.refuse_fork(0, head)
    table.for_analyst("ana").session.frame["age"].mean().release(mu=0.01)
    with pytest.raises(LedgerError, match=r"column 'age': the ledger has high=90\.0, the session has high=100\.0"):
        served(AGE, division=RESERVED)


def test_a_divided_budget_stays(served: Any) -> None:
    served(AGE, division=RESERVED)
    with pytest.raises(LedgerError, match="was created for another budget"):
        served(AGE, BEGIN.replace("epsilon = 1.0", "epsilon = 2.0"), division=RESERVED)


def test_a_text_file_is_read_with_the_columns_that_order_its_rows(tmp_path: Path) -> None:
    from dpnb._sources.formats import read_tables
    from dpnb._sources.source import DataSource

    ROWS.to_csv(tmp_path / "people.csv", index=False)

    def opened(*names: str) -> dpnb.Session:
        from dpnb._core.tables import PrivateTables

        schema = {name: dpnb.Bounded(0, 100) for name in names}
        tables = PrivateTables.declared(schema, several=False, privacy_unit="who", rows=1)
        table = read_tables({"": DataSource(str(tmp_path / "people.csv"))}, "table", tables.wanted)[""]
        options: dict[str, Any] = {"privacy_unit": "who", "max_rows_per_unit": 1, "ledger": tmp_path / "x.dpnb"}
        return dpnb.Session(table, name="x", budget=dpnb.Budget.gdp(1), schema=schema, **options)

    ROWS.assign(size=1.0).to_csv(tmp_path / "people.csv", index=False)
    opened("age").frame.count().release(mu=0.1)
    opened("age", "cost").frame["cost"].mean().release(mu=0.1)
    opened("age", "cost", "size").frame["size"].mean().release(mu=0.1)
    with pytest.raises(SchemaError, match="schema: must have column 'cost', which another session added before"):
        opened("age", "size")
    opened("age")
