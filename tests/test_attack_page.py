"""Every published attack has its three parts and a row on the page of attacks, and every row has its file."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from scripts import loaded

ROOT = Path(__file__).resolve().parent.parent
WHOLE = '''"""A title.

Kind: sums
Fault: What went wrong,
in two lines.
Reported: opendp/opendp#1; arXiv:2207.10635 (a paper); https://example.org/page (words)
dpnb: What dpnb does.

More.
"""


def attack(target):
    return target()


def test_dpnb_resists():
    assert not attack(lambda: False)


def test_the_control_is_caught():
    assert attack(lambda: True)
'''


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return loaded("attack_page")


def test_the_page_has_a_row_for_every_file_and_a_file_for_every_row(script: ModuleType) -> None:
    page = script.PAGE.read_text(encoding="utf-8")
    assert page == script.written(page), "run python .ci/attack_page.py"
    files = re.findall(rf"^\| \[[^]]+\]\({script.SOURCE}/(\w+\.py)\)", page, flags=re.MULTILINE)
    assert sorted(files) == sorted(path.name for path in script.FOLDER.glob("test_*.py"))
    assert len(files) >= 25


def test_every_attack_was_reported_somewhere(script: ModuleType) -> None:
    for attack in script.attacks():
        assert attack.fault.endswith("."), attack.file
        assert attack.answer.endswith("."), attack.file
        assert all(attack.reported), attack.file


def test_an_attack_is_small(script: ModuleType) -> None:
    lengths = {path.name: len(path.read_text("utf-8").splitlines()) for path in script.FOLDER.glob("test_*.py")}
    assert {name: length for name, length in lengths.items() if length > 240} == {}
    assert sorted(lengths.values())[len(lengths) // 2] < 80


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Fault: What", "What"),
        ("Kind: sums", "Kind: others"),
        ("Reported: ", "Report: "),
        ("in two", "a | in two"),
        ("def attack(", "def attacked("),
        ("def test_the_control_is_caught", "def test_the_control"),
        ("assert not attack(lambda: False)", "assert True"),
    ],
)
def test_a_file_that_lacks_a_part_is_found(script: ModuleType, tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "test_it.py"
    path.write_text(WHOLE, encoding="utf-8")
    assert script.read(path).fault == "What went wrong, in two lines."
    assert script.read(path).row.count("](") == 4
    path.write_text(WHOLE.replace(old, new), encoding="utf-8")
    with pytest.raises(ValueError, match=r"test_it\.py"):
        script.read(path)


def test_one_command_runs_them() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^attacks: .*## .*\n\t\$\(PYTEST\) tests/attacks", makefile, flags=re.MULTILINE)
