"""Which files `make test-all AFTER_TEST=yes` does not load."""

from __future__ import annotations

import json
import os
from pathlib import Path

from spared import run_whole, still_known


def test_a_file_with_a_test_that_was_left_out_is_loaded_again() -> None:
    whole, part, none = Path("whole.py"), Path("part.py"), Path("none.py")
    assert run_whole([whole, whole, part, part, none], [whole, part, whole]) == [whole]


def test_all_are_loaded_if_nothing_is_kept_or_anything_has_changed_since(tmp_path: Path) -> None:
    test, kept = tmp_path / "tests" / "test_x.py", tmp_path / "kept.json"
    test.parent.mkdir()
    test.touch()
    assert still_known(kept, tmp_path) == frozenset()
    kept.write_text(json.dumps(["tests/test_x.py"]))
    os.utime(test, (1, 1))
    assert still_known(kept, tmp_path) == {test}
    contract = tmp_path / "tests" / "contracts" / "filters.py"
    contract.parent.mkdir()
    contract.touch()
    os.utime(contract, (2e9, 2e9))
    assert still_known(kept, tmp_path) == frozenset()
