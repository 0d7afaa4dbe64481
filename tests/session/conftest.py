"""What the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def sessions_end_with_their_module() -> Iterator[None]:
    yield
    from session.bad_input import forget  # not before its asserts are rewritten

    forget()
