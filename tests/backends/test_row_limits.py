"""The choice of a unit's rows in an engine, by a sort of hashes in numpy."""

from __future__ import annotations

import numpy as np

from dpnb._backends.contribution import PRIME_BITS, ranks, row_hash
from dpnb._backends.lazy.units import last_hashes


def test_the_same_rows_are_chosen_as_by_their_ranks() -> None:
    rng = np.random.default_rng(5)
    for max_rows in (1, 2, 5):
        units, content = rng.integers(0, 40, 300), rng.integers(0, 10**6, 300)
        hashes = row_hash([row_hash([units, content]), np.zeros_like(content)])
        found, last, tied, count = last_hashes((units << PRIME_BITS) + hashes, max_rows)
        limit = dict(zip(found.tolist(), last.tolist(), strict=True))
        kept = np.array(
            [hashed <= limit.get(unit, hashed) for unit, hashed in zip(units.tolist(), hashes, strict=True)]
        )
        assert not len(tied)
        assert count == len(np.unique(units))
        assert (kept == (ranks(units, units, [content]) < max_rows)).all()


def test_units_with_equal_rows_are_found() -> None:
    sorting = (np.array([3, 3, 3, 8, 8, 9]) << PRIME_BITS) + np.array([5, 5, 6, 1, 2, 5])
    assert last_hashes(sorting, 1)[2].tolist() == [3]


def test_a_table_without_rows_has_no_units() -> None:
    assert [np.size(part) for part in last_hashes(np.empty(0, np.int64), 2)] == [0, 0, 0, 1]
    assert last_hashes(np.empty(0, np.int64), 2)[3] == 0
