"""What `make test` has run whole is not loaded again by `make test-all AFTER_TEST=yes`: a pytest plugin.

Of two files in three it runs every test, and to load a file takes as long as many of its tests.  `make test` keeps the
names of those files; they count until something that decides about tests has changed.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from durations import LEAST_TESTS

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "build" / "run-whole.json"


def run_whole(found: list[Path], chosen: list[Path]) -> list[Path]:
    """The files of which all tests that were found are chosen."""
    each = Counter(chosen)
    return sorted(path for path, count in Counter(found).items() if each[path] == count)


def still_known(kept: Path, root: Path) -> frozenset[Path]:
    """The files that were kept, or none if tests, package, pages or examples have changed since."""
    if not kept.exists():
        return frozenset()
    files = (path for name in ("tests", "dpnb", "docs", "examples") for path in (root / name).rglob("*.*"))
    decisive = (path for path in files if path.suffix in (".py", ".toml", ".md", ".ipynb"))
    if max(path.stat().st_mtime for path in decisive) > kept.stat().st_mtime:
        return frozenset()
    return frozenset(root / name for name in json.loads(kept.read_text()))


@cache
def spared() -> frozenset[Path]:
    """The files that this run does not load."""
    return still_known(KEPT, ROOT) if os.environ.get("AFTER_TEST") else frozenset()


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Whether a file that the command does not name is left out."""
    return True if collection_path in spared() else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Keep the names in `make test`, once for all of its processes."""
    found = [item.path for item in items]
    yield
    is_first = os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0"
    if is_first and os.environ.get("DPNB_TEST_LEVEL") == "quick" and len(items) >= LEAST_TESTS:
        whole = run_whole(found, [item.path for item in items])
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_text(json.dumps([str(path.relative_to(ROOT)) for path in whole]))
