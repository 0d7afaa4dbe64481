"""What all tests of compiled plans share: one thread reads their tables."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dpnb._backends.memory import blocks


@pytest.fixture(autouse=True, scope="module")
def _one_core() -> Iterator[None]:
    """To wake a second thread for each of a hundred thousand tables of four rows takes an eighth of the time.

    What several threads do is shown by `backends/test_blocks.py`.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "cores", lambda: 1)
        yield
