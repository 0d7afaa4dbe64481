"""Full products of parameters, of which the quick level runs a pairwise selection."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import pytest
from allpairspy import AllPairs


def pairwise(*factors: Iterable[Any], together: int = 2) -> set[tuple[int, ...]]:
    """A small part of the full product in which any two values occur together somewhere, as positions in the factors.

    With together=1 each value occurs somewhere.  The same factors always give the same part.
    """
    positions = [range(len(list(factor))) for factor in factors]

    def parts(place: Iterable[int]) -> set[Any]:
        return set(itertools.combinations(enumerate(place), together))

    chosen = {tuple(place) for place in AllPairs(positions, n=together)}
    seen = set().union(*map(parts, chosen))
    for place in itertools.product(*positions):
        if not parts(place) <= seen:  # AllPairs is greedy and may end before it has them all
            chosen.add(place)
            seen |= parts(place)
    return chosen


def one_in(every: int, values: Iterable[Any]) -> list[Any]:
    """Values for pytest.mark.parametrize of which the quick level runs one in `every`; the others are marked slow.

    >>> [bool(param.marks) for param in one_in(3, "abcd")]
    [False, True, True, False]
    """
    return [pytest.param(value, marks=pytest.mark.slow if at % every else ()) for at, value in enumerate(values)]


def product(*factors: Iterable[Any], together: int = 2) -> list[Any]:
    """The full product for pytest.mark.parametrize; what is not in the pairwise part is marked slow.

    >>> params = product("abc", "de", [1, 2, 3])
    >>> len(params), sum(not param.marks for param in params)
    (18, 9)
    """
    values = [list(factor) for factor in factors]
    quick = pairwise(*values, together=together)
    places = itertools.product(*(range(len(factor)) for factor in values))
    return [
        pytest.param(
            *(factor[at] for factor, at in zip(values, place, strict=True)),
            marks=() if place in quick else pytest.mark.slow,
        )
        for place in places
    ]
