"""A service whose curator declares another version of a table, with other columns and a new file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpnb
from dpnb._sources.source import DataSource
from dpnb.curator.audit import audit
from dpnb.curator.verification import verify
from dpnb.errors import BudgetExceeded, InvalidValueError, LedgerError
from dpnb.interactive.scan import discard_hidden_noise
from dpnb.ledger.charge import CLOSE, VERSION
from dpnb.ledger.replica import ReplicaLedger
from dpnb.service.access.tokens import new_token
from dpnb.service.app import Service
from dpnb.service.configuration.parts import AmountSettings, DivisionSettings, PartSettings
from dpnb.service.configuration.settings import DataSetting, TableSettings
from dpnb.service.curation.state import described
from dpnb.service.opening import OpenTable, open_table
from dpnb.session.backup import back_up
from dpnb.session.disclosure.building import report_of
from service.running import running

AMOUNT = AmountSettings(Fraction(1, 2))
RESERVED = DivisionSettings("reserved", tuple(PartSettings("analyst", name, ceiling=AMOUNT) for name in ("ana", "bob")))
POOLED = DivisionSettings("pooled", tuple(PartSettings("analyst", name, cap=AMOUNT) for name in ("ana", "bob")))
ROWS = pd.DataFrame({"age": [20.0 + number % 60 for number in range(300)], "ward": ["north", "south"] * 150})
OLD = {"age": dpnb.Bounded(0, 100), "ward": dpnb.Categories(["north", "south"])}
NEW = {"age": dpnb.Bounded(0, 120), "ward": dpnb.Categories(["north", "south", "west"])}


@contextmanager
def service(folder: Path, division: DivisionSettings, schema: Any, version: str) -> Iterator[tuple[str, Service]]:
    session = dpnb.Session(
        ROWS,
        name="people",
        budget=dpnb.Budget.gdp(2),
        schema=schema,
        version=version,
        ledger=folder / "people.dpnb",
        not_private_test_seed=4,
    )
    with running(folder, session, division) as (address, one):
        try:
            yield address, one
        finally:
            one.tables["people"].table.close()


@pytest.mark.parametrize("division", [RESERVED, POOLED], ids=["reserved", "pooled"])
def test_a_year_of_a_served_table(division: DivisionSettings, tmp_path: Path) -> None:
    ledger, token = str(tmp_path / "people.dpnb"), new_token(tmp_path / "tokens.json", "ana")
    with service(tmp_path, division, OLD, "2025") as (address, _):
        remote = dpnb.connect(address, "people", token=token)
        mean = remote.frame["age"].mean().release(mu="0.2")
        remote.plan([remote.frame.groupby("ward").size(), remote.frame.count()]).release(mu="0.1")
        remote.delegate(mu="0.1", name="team").frame.count().release(mu="0.01")
        said, spent = remote.log["estimate"].tolist(), remote.spent
        remote.report(answers=True).save(tmp_path / "before.json")
    with service(tmp_path, division, NEW, "2026") as (address, one):
        table = one.tables["people"].table
        count = table.session.ledger.count
        with pytest.raises(LedgerError, match="connect again"):  # the copy of last year
            remote.frame["age"].mean().release(mu="0.3")
        assert table.session.ledger.count == count
        assert described(table).version == "2026"
        remote.close()
        later = dpnb.connect(address, "people", token=token)
        description = later._copy._table
        assert [{*earlier.metadata} for earlier in description.earlier] == [{"schema", "privacy_unit"}]
        assert list(later.schema) == ["age", "ward"]
        assert "west" in repr(later.schema)
        assert (later.version, later.spent) == ("2026", spent)
        assert later.log["estimate"].tolist() == said  # also of the batch, which is read with the old columns
        assert later.mechanisms["team"].state == "unavailable"
        again = later.frame["age"].mean().release(mu="0.2")
        assert float(again) != float(mean)
        assert again.refine(mu="0.25").n_observations == 2
        team = later.delegate(mu="0.1", name="team")  # a new one, not the one that ended
        assert team.frame.count().release(mu="0.01").n_observations == 1
        assert later.spent.mu_squared == spent.mu_squared + Fraction("0.0625") + Fraction("0.01")
        with pytest.raises(BudgetExceeded):  # the ceiling is not restarted
            later.frame.count().release(mu="1.38")
        later.report(answers=True).save(tmp_path / "after.json")
        report = later.report()
        assert [(one.version, one.tables is None) for one in report.versions] == [("2025", False), ("2026", True)]
        later.close()
    for name in ("before.json", "after.json"):
        assert verify(str(tmp_path / name), ledger).differences == (), name
    assert [one.version for one in report_of(ledger).versions] == ["2025", "2026"]
    assert audit(ledger).problems == ()


def test_control_a_copy_without_the_earlier_columns_reads_other_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = new_token(tmp_path / "tokens.json", "ana")
    with service(tmp_path, RESERVED, OLD, "2025") as (address, _):
        remote = dpnb.connect(address, "people", token=token)
        remote.plan([remote.frame.groupby("ward")["age"].sum(), remote.frame["age"].sum()]).release(mu="0.1")
        said = remote.log["estimate"].tolist()
        remote.close()
    monkeypatch.setattr(ReplicaLedger, "earlier", property(lambda self: (), lambda self, value: None), raising=False)
    with service(tmp_path, RESERVED, {**OLD, "age": dpnb.Bounded(0, 3000)}, "2026") as (address, _):
        later = dpnb.connect(address, "people", token=token)
        assert later.log["estimate"].tolist() != said  # by a power of two
        later.close()


# --- declarations and files -------------------------------------------------------------------------------------------


DECLARED = """\
name = "people"
version = "{version}"
budget = {{ epsilon = 1.0, delta = 1e-6 }}
[schema]
age = {{ type = "bounded", low = 0, high = {high} }}
seen = {{ type = "dates", first = 2025-01-01, last = {last}-12-31 }}
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Any]:
    opened: list[OpenTable] = []

    def start(version: str, high: int, last: int, file: str) -> OpenTable:
        while opened:
            opened.pop().close()
        path = tmp_path / "people.toml"
        path.write_text(DECLARED.format(version=version, high=high, last=last), "utf-8")
        settings = TableSettings("people", "here", declaration=path, data=DataSetting(DataSource(str(tmp_path / file))))
        opened.append(open_table(settings, tmp_path / "heads"))
        return opened[-1]

    for year, days in (("2025", 300), ("2026", 600)):
        seen = pd.to_datetime("2025-01-01") + pd.to_timedelta(range(days), unit="D")
        pd.DataFrame({"age": [30.0] * days, "seen": seen}).to_parquet(tmp_path / f"{year}.parquet")
    yield start
    while opened:
        opened.pop().close()


def test_a_new_year_has_a_new_file_a_new_version_and_a_longer_range_of_dates(start: Any) -> None:
    session = start("2025", 100, 2025, "2025.parquet").session
    answer = session.frame["age"].mean().release(mu="0.05")
    with pytest.raises(InvalidValueError, match="data of the table changed after '2025'"):
        start("2025", 100, 2025, "2026.parquet")
    with pytest.raises(LedgerError, match="version '2025' of its table was used with another declaration"):
        start("2025", 100, 2026, "2025.parquet")
    session = start("2026", 100, 2026, "2026.parquet").session
    assert session.frame["age"].mean().release(mu="0.05").n_observations == 1
    assert session.spent.mu_squared == 2 * Fraction("0.0025")
    session = start("2025", 100, 2025, "2025.parquet").session  # put back, with its file
    assert float(session.frame["age"].mean().release(mu="0.05")) == float(answer)
    with pytest.raises(InvalidValueError, match="data of the table changed after '2025'"):
        start("2025", 100, 2025, "2026.parquet")


def test_an_older_copy_of_the_ledger_is_refused_before_a_version_is_declared_in_it(start: Any, tmp_path: Path) -> None:
    table, ledger = start("2025", 100, 2025, "2025.parquet"), tmp_path / "people.dpnb"
    table.session.frame["age"].mean().release(mu="0.05")
    back_up(str(ledger), str(tmp_path / "copies"))
    table.session.frame["age"].mean().release(mu="0.1")
    table.close()
    copied = (tmp_path / "copies" / "people.dpnb").read_bytes()
    ledger.write_bytes(copied)
    with pytest.raises(LedgerError, match=r"must contain row 3 .* it has 2 rows"):
        start("2026", 100, 2026, "2026.parquet")
    assert ledger.read_bytes() == copied
    ledger.unlink()
    with pytest.raises(LedgerError, match=r"must contain row 3 .* the file is missing or empty"):
        start("2026", 100, 2026, "2026.parquet")
    assert not ledger.exists()


def test_the_end_of_a_lost_scan_does_not_fix_the_columns_of_a_new_version(start: Any) -> None:
    """A restart closes it, and that row has the new version: nothing was requested of that yet."""
    session = start("2025", 100, 2025, "2025.parquet").session
    scan = session.above_threshold(10**9, name="line", epsilon="0.01")
    scan.ask(session.frame.count())
    core = session._core
    launch = next(iter(core.account.tree.sync().values()))
    discard_hidden_noise(launch.resolved["noise_token"])  # the process has ended
    rows = start("2026", 1000, 2026, "2026.parquet").session.ledger.charges()
    assert (CLOSE, "2026") in [(row.kind, row.table_version) for row in rows]
    session = start("2026", 110, 2026, "2026.parquet").session  # a bound was mistyped
    assert [row.kind for row in session.ledger.charges()].count(VERSION) == 2
    session.frame["age"].mean().release(mu="0.05")
    assert audit(session.ledger.path).problems == ()


def test_a_served_table_is_described_as_it_was_opened(start: Any, tmp_path: Path) -> None:
    """Another session, such as the curator's own, declares another version meanwhile: the service charges no more."""
    table = start("2025", 100, 2025, "2025.parquet")
    answer = table.session.frame["age"].mean().release(mu="0.05")
    known = table.for_analyst("ana").description
    path = tmp_path / "people.toml"
    path.write_text(DECLARED.format(version="2026", high=110, last=2026), "utf-8")
    dpnb.Session.from_toml(path, pd.read_parquet(tmp_path / "2026.parquet"))
    assert table.for_analyst("ana").description.metadata == known.metadata
    assert table.for_analyst("ana").description.columns == known.columns
    assert float(table.session.frame["age"].mean().release(mu="0.05")) == float(answer)
    with pytest.raises(LedgerError, match=r"declaration was changed by another session.*nothing was charged"):
        table.session.frame["age"].mean().release(mu="0.1")


@pytest.mark.parametrize("division", [RESERVED, POOLED], ids=["reserved", "pooled"])
def test_analysts_of_a_served_table_have_the_words_and_the_label(division: DivisionSettings, tmp_path: Path) -> None:
    words: dict[str, Any] = {"statement": {"title": "Stays"}, "unit_label": "patient"}
    session = dpnb.Session(
        ROWS, name="people", budget=dpnb.Budget.gdp(2), schema=OLD, ledger=tmp_path / "people.dpnb", **words
    )
    token = new_token(tmp_path / "tokens.json", "ana")
    with running(tmp_path, session, division) as (address, one):
        remote = dpnb.connect(address, "people", token=token)
        remote.frame.count().release(mu="0.05")
        report = remote.report()
        assert report.stated == session.report().stated is not None
        assert "one patient" in remote.guarantee
        report.save(tmp_path / "with.json")
        remote._core.account.ledger._stated = None  # somebody leaves them out
        remote.report().save(tmp_path / "without.json")
        remote.close()
        one.tables["people"].table.close()
    found = [verify(str(tmp_path / f"{name}.json"), str(tmp_path / "people.dpnb")) for name in ("with", "without")]
    assert [one.is_fine for one in found] == [True, True]
    assert ["own words" in " ".join(one.notes) for one in found] == [False, True]
