"""What a declaration would change in its ledger is said before; and the versions of a table in a person's statement."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

import dpnb
from dpnb.curator.check import Check, check
from dpnb.curator.check_text import check_text
from dpnb.curator.personal_statement import statement
from dpnb.curator.personal_statement_text import statement_text
from ledger.rows import contents

HEAD = 'name = "clinic"\nbudget = { epsilon = 1.0, delta = 1e-6 }\n'

VISITS = pd.DataFrame({
    "who": [number // 2 for number in range(100)],
    "age": [20.0, 60.0] * 50,
    "seen": pd.to_datetime("2025-01-01") + pd.to_timedelta([4 * number for number in range(100)], unit="D"),
})  # fmt: skip
UNIT = 'privacy_unit = "who"\nmax_rows_per_unit = 2\nversion = "{}"\n{}'
COLUMNS = (
    'age = {{ type = "bounded", low = 0, high = {} }}\nseen = {{ type = "dates", first = 2025-01-01, last = {} }}\n'
)


def changes(folder: Path, version: str, high: int, last: str, more: str = "") -> tuple[str, Check]:
    before = contents(folder)
    text = f"{HEAD}{UNIT.format(version, more)}[schema]\n{COLUMNS.format(high, last)}"
    (folder / "clinic.toml").write_text(text, "utf-8")
    VISITS.to_parquet(folder / "table.parquet")
    made = check(str(folder / "clinic.toml"), [str(folder / "table.parquet")])
    assert {name: text for name, text in contents(folder).items() if ".dpnb" in name} == {
        name: text for name, text in before.items() if ".dpnb" in name
    }
    return " ".join(made.changes.sentences if made.changes is not None else ()), made


def faults(made: Check) -> str:
    return "\n".join(one.text for one in made.advice if one.to_fix)


def opened(folder: Path) -> dpnb.Session:
    return dpnb.Session.from_toml(folder / "clinic.toml", VISITS)


def test_what_a_new_version_changes_is_said_before(tmp_path: Path) -> None:
    told, made = changes(tmp_path, "2025", 100, "2025-12-31")
    assert (told, made.changes) == ("", None)  # there is no ledger yet
    session = opened(tmp_path)
    session.frame.count().release(mu=0.05)
    session.delegate(mu=0.05, name="team")
    assert changes(tmp_path, "2025", 100, "2025-12-31")[0] == ""
    told, made = changes(tmp_path, "2025", 110, "2025-12-31")
    assert not made.fine
    assert "version '2025' of its table was used with another declaration" in faults(made)
    _, made = changes(tmp_path, "2026", 110, "2026-12-31", "sampled = 0.5\n")
    assert "sampled: the ledger was created with sampled='population'" in faults(made)
    told, made = changes(tmp_path, "2026", 110, "2026-12-31")
    assert made.fine
    for part in (
        "Version '2026' is new: its answers are new ones",
        "What was charged stays: 2 requests of version '2025'.",
        "column 'age': it was high=100.0, it is now high=110.0",
        "column 'seen': it was last='2025-12-31', it is now last='2026-12-31'",
        "is not given back: sub-session 'team'.",
    ):
        assert part in told
    assert "worst case" not in told
    assert "What it would change in the ledger" in check_text(made)
    later = opened(tmp_path)
    later.frame.count().release(mu=0.05)
    told, made = changes(tmp_path, "2025", 100, "2025-12-31")
    assert "Version '2025' was used before: its recorded answers are free again" in told
    told, made = changes(tmp_path, "2027", 110, "2026-12-31")
    assert "Version '2027' is new" in told
    assert "other columns" not in told
    told, made = changes(tmp_path, "2026", 110, "2026-12-31", 'filter = "zcdp"\n')
    assert "was created for another filter" in faults(made)


def test_the_cost_of_a_new_version_under_individual_accounting_is_said_before(tmp_path: Path) -> None:
    individual = 'accounting = "individual"\n'
    changes(tmp_path, "2025", 100, "2025-12-31", individual)
    session = opened(tmp_path)
    session.frame[session.frame["age"] > 50].count().release(share=0.5)
    told, _ = changes(tmp_path, "2026", 110, "2026-12-31", individual)
    assert "every unit is charged the worst case for all requests of other versions" in told
    assert "50.0% of the budget of each unit" in told
    session.frame[session.frame["age"] < 50].count().release(mu=0.2)
    told, _ = changes(tmp_path, "2026", 110, "2026-12-31", individual)
    assert "No unit could pay for anything more." in told


def test_a_statement_of_one_person_has_the_columns_of_its_version_and_lists_all(tmp_path: Path) -> None:
    individual, ledger, file = 'accounting = "individual"\n', str(tmp_path / "clinic.dpnb"), tmp_path / "table.parquet"
    changes(tmp_path, "2025", 100, "2025-12-31", individual)
    old = opened(tmp_path)
    old.frame["age"].sum().release(mu=0.05)
    changes(tmp_path, "2026", 200, "2026-12-31", individual)
    opened(tmp_path).frame["age"].sum().release(mu=0.05)
    first, second = (statement(ledger, [str(file)], "3", version=version) for version in ("2025", "2026"))
    assert [one.participation for one in first.entries] == ["in full", "worst case"]
    assert [one.participation for one in second.entries] == ["worst case", "in full"]
    # The rows of a person add 80 to the sum, of 200 or of 400 that they could.
    assert second.entries[1].paid < first.entries[0].paid < first.entries[1].paid
    text = " ".join(statement_text(first).split())
    assert "version 2025: 1 request" in text
    assert "age (numbers 0 to 100), seen (dates in UTC 2025-01-01 to 2025-12-31)" in text
    assert "age (numbers 0 to 200), seen (dates in UTC 2025-01-01 to 2026-12-31)" in text
