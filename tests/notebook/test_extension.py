"""``%load_ext dpnb`` in a plain terminal shell, where there is no kernel and no widget."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import dpnb


def test_the_magic_shows_every_session_as_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    quiet = Config()
    quiet.HistoryManager.enabled = False  # no database that outlives the test
    shell = InteractiveShell(config=quiet)
    try:
        dpnb.load_ipython_extension(shell)
        session = dpnb.Session(
            pd.DataFrame({"x": [1.0]}),
            name="terminal",
            budget=dpnb.Budget.gdp(1),
            schema={"x": dpnb.Bounded(0, 5)},
            ledger=tmp_path / "terminal.dpnb",
        )
        session.frame.count().release(mu=0.6)
        shell.run_line_magic("dpnb", "nonsense")
        assert "takes no arguments" in capsys.readouterr().out
        shell.run_line_magic("dpnb", "")
        assert "dpnb session terminal" in capsys.readouterr().out
        dpnb.unload_ipython_extension(shell)
        assert "dpnb" not in shell.magics_manager.magics["line"]
    finally:
        shell.configurables.clear()
