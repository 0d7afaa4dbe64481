"""Work on rows under settings of its own, whatever an analyst has set and whichever thread ends first."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

from dpnb._backends.worker_thread import isolated_numeric_settings
from threads import joined
from waiting import LIMIT


def overflow() -> None:
    warnings.warn("of a row", UserWarning, stacklevel=1)
    np.float64(1e308) * np.array([10.0])


def test_what_an_analyst_has_set_decides_nothing() -> None:
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        with isolated_numeric_settings():
            overflow()
        isolated_numeric_settings()(overflow)()
        with pytest.raises(UserWarning, match="of a row"):
            overflow()


@pytest.mark.waits
def test_a_block_that_ends_after_one_which_began_before_it_leaves_nothing_behind() -> None:
    """As work that an interrupt left behind; with one `catch_warnings` each, warnings stayed ignored for good."""
    begun, go_on = threading.Event(), threading.Event()

    def left_behind() -> None:
        with isolated_numeric_settings():
            begun.set()
            go_on.wait(LIMIT)
            overflow()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = list(warnings.filters)
        thread = threading.Thread(target=left_behind)
        with isolated_numeric_settings():
            thread.start()
            assert begun.wait(LIMIT)
        go_on.set()
        joined(thread)
        assert warnings.filters == before


def test_a_block_that_ends_first_leaves_the_others_quiet() -> None:
    first, second = isolated_numeric_settings(), isolated_numeric_settings()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        overflow()
        second.__exit__(None, None, None)
        with pytest.raises(UserWarning, match="of a row"):
            overflow()
