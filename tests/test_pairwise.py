"""The quick level's part of a product holds what it says, and the thorough level's is the whole product."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from pairwise import pairwise, product

FACTORS = ("abcdef", [1, 2, 3], (None, True), "xyzw")


@pytest.mark.parametrize("together", [1, 2, 3])
def test_any_values_that_are_to_occur_together_do(together: int) -> None:
    chosen = pairwise(*FACTORS, together=together)
    for some in itertools.combinations(range(len(FACTORS)), together):
        seen = {tuple(place[factor] for factor in some) for place in chosen}
        assert seen == set(itertools.product(*(range(len(FACTORS[factor])) for factor in some)))
    assert len(chosen) < [0, 9, 36, 120][together], "a small part of the 144"


def test_the_product_is_whole_and_only_the_rest_is_slow() -> None:
    params = product(*FACTORS)
    assert [param.values for param in params] == list(itertools.product(*FACTORS))
    assert sum(not param.marks for param in params) == len(pairwise(*FACTORS))
    assert {mark.name for param in params for mark in param.marks} == {"slow"}


def test_of_two_factors_all_pairs_are_quick_unless_less_is_asked_for() -> None:
    assert not any(param.marks for param in product("abc", "de"))
    assert sum(not param.marks for param in product("abc", "de", together=1)) == 3


def test_another_process_chooses_the_same() -> None:
    """Processes that divide the tests among themselves must collect the same ones."""
    code = f"from pairwise import pairwise; print(sorted(pairwise(*{FACTORS!r})))"
    for seed in ("1", "2"):
        found = subprocess.run(
            [sys.executable, "-c", code],
            cwd=Path(__file__).parent,
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert found.stdout.strip() == str(sorted(pairwise(*FACTORS)))
