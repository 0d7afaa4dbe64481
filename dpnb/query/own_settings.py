"""Work on rows under settings of our own: what an analyst has set for warnings must not decide whether it fails.

``numpy.seterr(all="raise")`` or ``warnings.simplefilter("error")`` would make an error of what one row gives, an
overflow say, and ``numpy.seterr(all="print")`` a line in the notebook.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def own_settings() -> Iterator[None]:
    """Work on rows that neither warns nor fails for what doubles do; also as a decorator."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield
