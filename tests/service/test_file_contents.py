"""Data files that change under an old version: refused by their contents, which nobody but the curator learns."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpnb.__main__ import main
from dpnb._sources import text_file
from dpnb._sources.formats import digest_of
from dpnb._sources.source import DataSource
from dpnb.curator.audit import audit
from dpnb.errors import InvalidValueError, SchemaError
from dpnb.ledger.charge import TABLE_FILES
from dpnb.service.configuration.settings import DataSetting, TableSettings
from dpnb.service.curation.rows import audit_page
from dpnb.service.opening import OpenTable, check_table, open_table
from dpnb.session import backup as file_contents
from dpnb.session.backup import SUFFIX
from dpnb.session.disclosure.building import report_of

DECLARATION = 'name = "people"\nversion = "{0}"\nbudget = {{ epsilon = 1.0, delta = 1e-6 }}\n'
SCHEMA = '[schema]\nage = { type = "bounded", low = 0, high = 100 }\n'
TWO = """privacy_unit = "who"
max_rows_per_unit = { visits = 2, labs = 2 }
[schema.visits]
age = { type = "bounded", low = 0, high = 100 }
[schema.labs]
age = { type = "bounded", low = 0, high = 100 }
"""
ROWS = pd.DataFrame({"age": [20.0, 30.0, 40.0], "who": ["a", "b", "c"]})
CHANGED = ROWS.assign(age=[20.0, 30.0, 41.0])


def as_csv(rows: pd.DataFrame, path: Path) -> None:
    rows.to_csv(path, index=False)


def as_gzip(rows: pd.DataFrame, path: Path) -> None:
    path.write_bytes(gzip.compress(rows.to_csv(index=False).encode(), mtime=0))


def as_parquet(rows: pd.DataFrame, path: Path) -> None:
    rows.to_parquet(path)


def as_feather(rows: pd.DataFrame, path: Path) -> None:
    rows.to_feather(path)


def as_folder(rows: pd.DataFrame, path: Path) -> None:
    path.mkdir(exist_ok=True)
    rows.iloc[:1].to_parquet(path / "a.parquet")
    rows.iloc[1:].to_parquet(path / "b.parquet")


FORMATS: dict[str, Callable[[pd.DataFrame, Path], None]] = {
    "people.csv": as_csv,
    "people.csv.gz": as_gzip,
    "people.parquet": as_parquet,
    "people.feather": as_feather,
    "people": as_folder,
}


def settings(folder: Path, version: str = "1", schema: str = SCHEMA, **data: str) -> TableSettings:
    declaration = folder / "people.toml"
    declaration.write_text(DECLARATION.format(version) + schema, "utf-8")
    files = {name: DataSource(str(folder / file)) for name, file in data.items()}
    setting = DataSetting(files.get("one"), tuple(files.items()))
    return TableSettings("people", "here", declaration=declaration, data=setting)


def opened(folder: Path, version: str = "1", schema: str = SCHEMA, **data: str) -> OpenTable:
    return open_table(settings(folder, version, schema, **(data or {"one": "people.csv"})))


def served(folder: Path, version: str = "1", schema: str = SCHEMA, **data: str) -> int:
    """The number of rows of the ledger once the table is served."""
    table = opened(folder, version, schema, **data)
    try:
        return table.session.ledger.count
    finally:
        table.close()


@pytest.mark.parametrize("name", FORMATS)
def test_changed_contents_need_a_new_version(name: str, tmp_path: Path) -> None:
    write = FORMATS[name]
    write(ROWS, tmp_path / name)
    rows = served(tmp_path, one=name)
    assert served(tmp_path, one=name) == rows  # recorded once
    write(CHANGED, tmp_path / name)
    with pytest.raises(InvalidValueError, match="the data of the table changed after '1' was first used"):
        served(tmp_path, one=name)
    write(ROWS, tmp_path / name)
    assert served(tmp_path, one=name) == rows
    write(CHANGED, tmp_path / name)
    assert served(tmp_path, "2", one=name) > rows
    with pytest.raises(InvalidValueError, match="changed after '1'"):
        served(tmp_path, "1", one=name)


def test_a_file_that_is_copied_touched_or_moved_with_its_ledger_stays_valid(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    as_csv(ROWS, here / "people.csv")
    rows = served(here)
    os.utime(here / "people.csv", (0, 0))
    shutil.copy(here / "people.csv", here / "copy.csv")
    os.replace(here / "copy.csv", here / "people.csv")
    assert served(here) == rows
    shutil.copytree(here, there)  # another machine: everything is moved
    shutil.rmtree(here)
    assert served(there) == rows


def test_a_table_of_several_is_named(tmp_path: Path) -> None:
    as_csv(ROWS, tmp_path / "visits.csv")
    as_csv(ROWS, tmp_path / "labs.csv")
    files = {"visits": "visits.csv", "labs": "labs.csv"}
    served(tmp_path, "1", TWO, **files)
    as_csv(CHANGED, tmp_path / "labs.csv")
    with pytest.raises(InvalidValueError, match="the data of labs changed"):
        served(tmp_path, "1", TWO, **files)


def test_a_member_of_a_folder_is_not_forgotten(tmp_path: Path) -> None:
    as_folder(ROWS, tmp_path / "people")
    served(tmp_path, one="people")
    (tmp_path / "people" / "b.parquet").rename(tmp_path / "people" / "c.parquet")
    with pytest.raises(InvalidValueError, match="changed"):
        served(tmp_path, one="people")


def test_without_the_record_changed_rows_would_be_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: as before."""
    as_csv(ROWS, tmp_path / "people.csv")
    served(tmp_path)
    as_csv(CHANGED, tmp_path / "people.csv")
    monkeypatch.setattr("dpnb.service.opening.refuse_other_contents", lambda *arguments: None)
    served(tmp_path)


# --- the secret -----------------------------------------------------------------------------------------------------


def test_the_secret_is_the_curators_alone(tmp_path: Path) -> None:
    as_csv(ROWS, tmp_path / "people.csv")
    served(tmp_path)
    secret = tmp_path / f"people.dpnb{SUFFIX}"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert len(secret.read_bytes()) == file_contents.BYTES
    secret.chmod(0o640)
    with pytest.raises(InvalidValueError, match="run chmod 600"):
        served(tmp_path)
    secret.chmod(0o600)
    whole = secret.read_bytes()
    secret.write_bytes(whole[:5])
    with pytest.raises(InvalidValueError, match="must have 32 bytes"):
        served(tmp_path)
    secret.unlink()
    secret.symlink_to("another")
    with pytest.raises(InvalidValueError, match="cannot be made or read"):
        served(tmp_path)
    secret.unlink()
    secret.write_bytes(whole)
    secret.chmod(0o600)
    served(tmp_path)


@pytest.mark.parametrize("fault", ["is missing", "is another one"])
def test_a_lost_secret_is_refused_with_what_to_do(fault: str, tmp_path: Path) -> None:
    as_csv(ROWS, tmp_path / "people.csv")
    served(tmp_path)
    secret = tmp_path / f"people.dpnb{SUFFIX}"
    kept = secret.read_bytes()
    if fault == "is missing":
        secret.unlink()
    else:
        secret.write_bytes(b"x" * file_contents.BYTES)
    with pytest.raises(InvalidValueError, match=f"{fault}; nothing was charged; put it back, .* another version"):
        served(tmp_path)
    served(tmp_path, "2")
    secret.write_bytes(kept)
    served(tmp_path)


def test_after_an_erasure_the_digest_of_the_old_file_finds_no_row_without_its_key(tmp_path: Path) -> None:
    """Who has the key and all other rows finds the erased one by trial (the control); a new version gets a new key."""
    as_csv(ROWS, tmp_path / "people.csv")
    served(tmp_path)
    secret = tmp_path / f"people.dpnb{SUFFIX}"
    old = secret.read_bytes()

    def found(key: bytes) -> list[float]:
        """The ages of the erased person that fit a digest of the ledger."""
        fits, trial = [], tmp_path / "trial.csv"
        for age in range(30, 50):
            as_csv(ROWS.assign(age=[20.0, 30.0, age]), trial)
            one = file_contents._keyed(key, {"": digest_of(trial)})["tables"][""]
            fits += [float(age)] if one in digests_in(tmp_path / "people.dpnb") else []
        return fits

    as_csv(ROWS.iloc[:2], tmp_path / "people.csv")
    secret.unlink()
    rows = served(tmp_path, "2")
    assert served(tmp_path, "2") == rows  # the new key stays
    assert found(secret.read_bytes()) == []
    assert found(old) == [40.0]
    with pytest.raises(InvalidValueError, match="is another one"):
        served(tmp_path, "1")


def test_a_check_of_the_settings_needs_no_secret(tmp_path: Path) -> None:
    as_csv(ROWS, tmp_path / "people.csv")
    check_table(settings(tmp_path, one="people.csv"))
    assert [one.name for one in tmp_path.iterdir() if "dpnb" in one.name] == []


def digests_in(ledger: Path) -> list[str]:
    """The keyed digests of a ledger."""
    with sqlite3.connect(ledger) as opened:
        rows = opened.execute("SELECT details FROM events WHERE kind = ?", (TABLE_FILES,)).fetchall()
    found = [json.loads(details)["contents"] for (details,) in rows if "contents" in details]
    return [one for contents in found for one in (contents["secret"], *contents["tables"].values())]


def test_nobody_is_shown_a_digest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    as_csv(ROWS, tmp_path / "people.csv")
    ledger = tmp_path / "people.dpnb"
    table = opened(tmp_path)
    try:
        digests = digests_in(ledger)
        assert len(digests) == 2
        analyst = table.for_analyst("ana")
        session = table.session
        session.frame.count().release(mu=0.1)
        shown: list[Any] = [
            analyst.rows.after(0, 100),
            analyst.description,
            session.log.to_csv(),
            audit_page(table, 0),
            report_of(str(ledger)).to_html(),
            report_of(str(ledger)).to_json(),
        ]
        assert [row["kind"] for row in analyst.rows.after(0, 100)] == ["release"]
        assert (
            audit_page(table, 0).rows[0].words == "files of the table for version '1'"
        )  # an auditor sees that there is a row
    finally:
        table.close()
    report = tmp_path / "report.json"
    report.write_text(report_of(str(ledger)).to_json(), "utf-8")
    for command in (["audit", str(ledger)], ["verify", str(report), str(ledger)]):
        assert main(command) == 0, command
    shown.append(capsys.readouterr().out)
    assert audit(str(ledger)).is_fine
    for one in shown:
        assert not [part for part in digests if part in str(one)]
    secret = (tmp_path / f"people.dpnb{SUFFIX}").read_bytes()
    plain = digest_of(tmp_path / "people.csv")
    assert secret.hex() not in ledger.read_bytes().hex()
    assert plain not in ledger.read_bytes().decode("latin-1")
    assert digests[0] in ledger.read_bytes().decode("latin-1")  # the control


def test_equal_files_of_two_ledgers_have_different_digests(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        as_csv(ROWS, tmp_path / name / "people.csv")
        served(tmp_path / name)
    one, two = (digests_in(tmp_path / name / "people.dpnb") for name in ("one", "two"))
    assert not {*one} & {*two}


def test_a_file_that_is_replaced_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_csv(ROWS, tmp_path / "people.csv")
    as_csv(CHANGED, tmp_path / "new.csv")
    read = text_file._opened

    def late(file: Path) -> Any:
        os.replace(tmp_path / "new.csv", file)
        return read(file)

    with monkeypatch.context() as changed:
        changed.setattr(text_file, "_opened", late)
        with pytest.raises(SchemaError, match="must not change while it is read"):
            served(tmp_path)
    served(tmp_path)
