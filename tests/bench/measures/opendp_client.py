"""OpenDP's side of the benchmark: `opendp_peer` in a process of its own, asked line by line."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


class OpenDP:
    """OpenDP in a process of its own, with the same table; says nothing where it is not installed.

    Parameters
    ----------
    python : str or None
        The interpreter that has it.
    rows : int
    person : bool
    """

    def __init__(self, python: str | None, rows: int, person: bool) -> None:
        self.failures: dict[str, str] = {}
        self.said: dict[str, Any] = {"error": "left out"}
        self._process: Any = None
        if python is None:
            return
        if not Path(python).exists():
            self.said = {"error": "not installed"}
            return
        line = [python, str(HERE / "opendp_peer.py"), str(rows), str(person)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        self.said = self._read()

    def _read(self) -> dict[str, Any]:
        line = self._process.stdout.readline()
        return json.loads(line) if line else {"error": "it ended"}

    def took(self, question: str, above: float) -> float | None:
        """Seconds of one answer, timed there."""
        if "error" in self.said or question in self.failures:
            return None
        print(json.dumps({"question": question, "above": above}), file=self._process.stdin, flush=True)
        said = self._read()
        if "error" in said:
            self.failures[question] = said["error"]
        return said.get("seconds")

    def close(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.stdin.close()
            self._process.wait()
