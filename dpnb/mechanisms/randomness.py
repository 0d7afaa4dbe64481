"""The only place where chance enters dpnb.

The privacy promise holds for bits that nobody can predict or replay, so the one real source is the operating
system's.  A generator that can be seeded exists for tests, under a name that nobody passes by accident.
"""

from __future__ import annotations

import os
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpnb.errors import InvalidValueError

WORD_BITS = 64


@runtime_checkable
class NoiseSource(Protocol):
    """A supply of independent, uniformly distributed 64-bit words.

    Examples
    --------
    >>> from dpnb.mechanisms import NoiseSource, SystemNoiseSource
    >>> isinstance(SystemNoiseSource(), NoiseSource)
    True
    """

    @property
    def private(self) -> bool:
        """Whether the words are unpredictable, so that answers may be called private."""
        ...

    def words(self, n: int) -> NDArray[np.uint64]:
        """Draw fresh words.

        Parameters
        ----------
        n : int
            How many, >= 0.

        Returns
        -------
        ndarray of uint64, shape (n,)
            Never given out before and never again.
        """
        ...


class SystemNoiseSource:
    """Words from the operating system's cryptographic generator (`os.urandom`).

    It keeps no state: safe in threads and after a fork, with nothing in memory that would tell past noise.

    Examples
    --------
    >>> from dpnb.mechanisms import SystemNoiseSource
    >>> SystemNoiseSource().private, SystemNoiseSource().words(3).shape
    (True, (3,))
    """

    @property
    def private(self) -> bool:
        """True: nobody can predict these words."""
        return True

    def words(self, n: int) -> NDArray[np.uint64]:
        """Draw ``n`` fresh words; see `NoiseSource.words`."""
        return np.frombuffer(os.urandom(n * WORD_BITS // 8), dtype=np.uint64)


class NotPrivateSeededSource:
    """Repeatable words for tests: whoever knows the seed can subtract the noise.

    Parameters
    ----------
    seed : int
        Equal seeds give equal words, on every platform.

    Examples
    --------
    >>> from dpnb.mechanisms import NotPrivateSeededSource
    >>> source, again = NotPrivateSeededSource(7), NotPrivateSeededSource(7)
    >>> source.private, bool((source.words(3) == again.words(3)).all())
    (False, True)
    """

    def __init__(self, seed: int) -> None:
        self._generator = np.random.PCG64(seed)

    @property
    def private(self) -> bool:
        """False: nothing drawn from here protects anybody."""
        return False

    def words(self, n: int) -> NDArray[np.uint64]:
        """Draw the next ``n`` words of the sequence; see `NoiseSource.words`."""
        return np.asarray(self._generator.random_raw(n), dtype=np.uint64)


def checked_words(source: NoiseSource, n: int) -> NDArray[np.uint64]:
    """Draw from a source and refuse what is not ``n`` words.

    A source that hands out floats or too few words would weaken the noise silently.

    Parameters
    ----------
    source : Source
        Where to draw.
    n : int
        How many words, >= 0.

    Returns
    -------
    ndarray of uint64, shape (n,)

    Raises
    ------
    InvalidValueError
        Another type or shape came back.
    """
    words: object = source.words(n)  # whatever the annotations say
    if not isinstance(words, np.ndarray) or words.dtype != np.uint64 or words.shape != (n,):
        raise InvalidValueError(
            f"source: words(n) must return an array of n numbers of type uint64, {type(source).__name__} returned "
            f"something else. Use SystemSource()."
        )
    return words
