"""The documentation's table of methods has every public filter, odometer, conversion and mechanism, with a theorem."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpnb.accounting.guarantee import FILTERS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "methods.md"
PACKAGES = {
    "dpnb.accounting.filters": {"Filter"},
    "dpnb.accounting.odometers": {"Odometer"},
    "dpnb.accounting.conversions": set[str](),
    "dpnb.accounting.individual": set[str](),
    "dpnb.mechanisms": {"Measurement", "NoiseSource", "NotPrivateSeededSource", "RunningTotal", "SystemNoiseSource"},
    "dpnb.accounting.intervals": set[str](),
}
"""Public packages, each with its names that are no methods: protocols, values and sources of random bits."""


def rows() -> list[list[str]]:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def methods() -> Iterator[str]:
    for package, others in PACKAGES.items():
        module = importlib.import_module(package)
        for name in module.__all__:
            if name not in others and (
                inspect.isclass(getattr(module, name)) or inspect.isroutine(getattr(module, name))
            ):
                yield name


@pytest.mark.parametrize("name", sorted(set(methods())))
def test_a_method_has_a_row_with_a_theorem(name: str) -> None:
    (row,) = [row for row in rows() if name in re.findall(r"`(\w+)`", row[0])]
    assert name == "SumFilter" or re.search(r"\d{4}|own|theorem|mean of normal|release", row[-1]), row


def test_every_name_of_a_filter_has_one_row() -> None:
    named = [name for row in rows() for name in re.findall(r'^`"([\w-]+)"`$', row[1])]
    assert sorted(named) == sorted(FILTERS)


def test_the_table_names_nothing_that_does_not_exist() -> None:
    known = set(methods()) | {"convert", "group_privacy", "discover", "above_threshold", "delegate", "partition", "fit"}
    known |= {
        "survival",
        "count_active_units",
        "find_bounds",
        "noise_reduction",
        "top",
        "idxmax",
        "plan",
        "cumsum",
        "regress",
    }
    assert {name for row in rows() for name in re.findall(r"`(\w+)`", row[0])} <= known
