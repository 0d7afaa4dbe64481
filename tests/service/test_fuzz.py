"""Random requests of a hostile client: each is answered or refused by type, in the same way on neighbouring tables."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from service.bodies import mutated, neighbours, outcome, valid_bodies


def fuzz(folder: Path, number: int, seed: int) -> Counter[str]:
    """The kinds of outcome of some mutated bodies."""
    one, other = neighbours(folder)
    bodies = valid_bodies(one)
    assert valid_bodies(other) == bodies
    chance, kinds = random.Random(seed), Counter[str]()
    for body in bodies:
        text = json.dumps(body).encode()
        assert outcome(one, text) == outcome(other, text)
        assert outcome(one, text)[0] == "answer", (body, outcome(one, text))
    for _ in range(number):
        text = json.dumps(mutated(bodies, chance)).encode()
        try:
            result = outcome(one, text)
            assert outcome(other, text) == result
        except Exception as error:
            raise AssertionError(f"{text.decode()}: {type(error).__name__} {error}") from error
        assert len(result[1]) < 20_000
        kinds[result[0]] += 1
    return kinds


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_mutated_bodies_are_answered_or_refused_alike_on_neighbouring_tables(seed: int, tmp_path: Path) -> None:
    kinds = fuzz(tmp_path, 150, seed)
    assert kinds["answer"] > 5
    assert kinds["PlanError"] > 5
    assert kinds["WireError"] > 5
