"""A type checker sees the types of the public API: an analyst's script passes mypy, and each mistake is refused."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # half a minute of mypy if `make types` has left no cache

ROOT = Path(__file__).resolve().parents[1]
ERROR = re.compile(r"^(?:.*/)?(\w+)\.py:(\d+): error: .*  \[([\w-]+)\]$")
CONTROL = """
import typing
x: typing.Any = 1
typing.assert_type(x, int)
"""

Errors = set[tuple[int, str]]


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Errors]:
    """Line and code of each error that `make types` would find in scripts of analysts, by script.

    With its settings, and so with its cache: beside `--strict`, they only add errors, and skip modules without types.
    """
    control = tmp_path_factory.mktemp("mypy") / "control.py"
    scripts = [control, *(ROOT / "tests" / "typing" / f"{name}.py" for name in ("analyst", "mistakes"))]
    control.write_text(CONTROL, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--hide-error-context", "--no-error-summary", "--no-pretty"]
    done = subprocess.run([*command, *map(str, scripts)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    found: dict[str, Errors] = {script.stem: set() for script in scripts}
    for line in done.stdout.splitlines():
        if ": note: " not in line:
            match = ERROR.match(line)
            assert match is not None, line
            found[match[1]].add((int(match[2]), match[3]))
    return found


def test_analysts_script_has_the_types_it_states(errors: dict[str, Errors]) -> None:
    assert errors["analyst"] == set()


def test_an_any_fails_the_statement_of_its_type(errors: dict[str, Errors]) -> None:
    assert errors["control"] == {(4, "assert-type")}


def test_each_mistake_is_refused_in_its_line(errors: dict[str, Errors]) -> None:
    lines = (ROOT / "tests" / "typing" / "mistakes.py").read_text(encoding="utf-8").splitlines()
    expected = {(number, line.rpartition("  # ")[2]) for number, line in enumerate(lines, 1) if "  # " in line}
    assert errors["mistakes"] == expected
    assert len(expected) > 20
