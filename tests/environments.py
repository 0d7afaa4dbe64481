"""A virtual environment that holds what a wheel requires and nothing else, made without a network."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from importlib.metadata import Distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from waiting import LIMIT

BELONG_ELSEWHERE = ("PYTHON", "VIRTUAL_ENV", "CONDA", "PIP_", "UV_", "JUPYTER", "IPYTHON")
"""Beginnings of the variables that lead an environment's Python, pip or Jupyter to another place."""


def metadata(wheel: Path) -> Distribution:
    """What a wheel says of itself, without installing it."""
    [folder] = (entry for entry in zipfile.Path(wheel).iterdir() if entry.name.endswith(".dist-info"))
    return importlib.metadata.PathDistribution(folder)


def required(
    asked: Distribution, extras: frozenset[str], found: dict[str, frozenset[str]]
) -> dict[str, frozenset[str]]:
    """Add to `found` what a distribution with extras requires, by name with extras, and what that requires."""
    for text in asked.requires or ():
        need = Requirement(text)
        if need.marker and not any(need.marker.evaluate({"extra": extra}) for extra in extras | {""}):
            continue
        name = canonicalize_name(need.name)
        known = found.get(name)
        wanted = (known or frozenset()) | need.extras
        if wanted != known:
            found[name] = wanted
            required(importlib.metadata.distribution(name), wanted, found)
    return found


def _bring(distribution: Distribution, prefix: Path) -> None:
    """Put a distribution of this environment into another one.

    Its packages are links. What is not Python (the Lab's pages, other extensions, settings of the server) is copied,
    for a server gives out no file that lies elsewhere. Scripts would start this environment's Python and are left out.
    """
    here, there = Path(sys.prefix), Path(sysconfig.get_path("purelib", "venv", {"base": str(prefix)}))
    files = distribution.files or ()
    for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
        (there / top).symlink_to(str(distribution.locate_file(top)))
    for file in files:
        path = Path(os.path.normpath(str(distribution.locate_file(file))))
        if path.is_relative_to(here) and path.relative_to(here).parts[0] in ("etc", "share"):
            (prefix / path.relative_to(here)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, prefix / path.relative_to(here))


def environment_for(wheel: Path, extra: str, prefix: Path) -> Path:
    """Make an environment, bring what the wheel requires, let pip install the wheel; returns the Python.

    pip is this environment's, run by the new one's Python: to install another takes seconds. It is given no index and
    no folder to search. So it fails if the wheel requires anything that is not there, and installs nothing but the
    wheel.
    """
    venv.create(prefix, symlinks=True)
    for name in required(metadata(wheel), frozenset({extra}), {}):
        _bring(importlib.metadata.distribution(name), prefix)
    python = prefix / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-index"]
    done = _run(python, *command, f"{wheel}[{extra}]")
    assert done.returncode == 0, done.stdout + done.stderr
    return python


def run_there(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run that Python in its own environment, and keep what it says."""
    return _run(python, str(python), *arguments)


def _run(python: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env=variables(python),
        cwd=python.parents[1],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )


def variables(python: Path) -> dict[str, str]:
    """The environment variables of someone who uses that Python and has never seen this repository."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(BELONG_ELSEWHERE)}
    places = [place for place in kept["PATH"].split(os.pathsep) if Path(place) != Path(sys.prefix) / "bin"]
    return {**kept, "PATH": os.pathsep.join((str(python.parent), *places)), "PIP_CONFIG_FILE": os.devnull}
