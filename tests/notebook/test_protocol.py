"""The TypeScript types and guards are those that the protocol's structs give."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from ui.fake_session import Budget

SCRIPT = Path(__file__).parents[2] / ".ci" / "protocol.py"


def test_generated_typescript_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("protocol", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    for path, text in script.sources().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is out of date: run python .ci/protocol.py"


def test_made_up_session_of_the_browser_tests_is_a_snapshot() -> None:
    budget = Budget()
    budget.set(0.5)  # the log of releases has a row now
    assert budget.session().n_requests == 1
