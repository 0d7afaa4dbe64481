"""The machine that a benchmark ran on, in words; nothing that names it."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

LIBRARIES = ("dpnb", "numpy", "pandas", "polars", "duckdb", "pyarrow", "narwhals", "numba")


def machine(folder: str) -> dict[str, str]:
    """Its parts and the versions of what ran."""
    return {
        "Date": datetime.now(UTC).date().isoformat(),
        "CPU": f"{_line('/proc/cpuinfo', 'model name') or platform.machine()}, {os.cpu_count()} cores",
        "Memory": _memory(),
        "Disk of the ledgers": _file_system(folder),
        "System": f"{platform.system()} {platform.release().split('-')[0]}",
        "Python": platform.python_version(),
        "Libraries": ", ".join(f"{name} {found}" for name in LIBRARIES if (found := _version(name))),
    }


def _line(path: str, name: str) -> str | None:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), None)


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
    except (ValueError, OSError):
        return "unknown"


def _file_system(folder: str) -> str:
    """Its type, by the longest mount point above the folder."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return "unknown"
    above = [mount for mount in mounts if Path(folder).resolve().is_relative_to(mount[1])]
    return max(above, key=lambda mount: len(mount[1]))[2] if above else "unknown"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
