"""Sources of random bits: the only place in dpnb that draws randomness.

The privacy guarantee holds for bits that cannot be predicted or replayed, so the only private source is the operating
system's.  A seeded generator exists for tests, under a name that prevents accidental use.
"""

from __future__ import annotations

import hashlib
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
        """Draw `n` fresh words, which are returned only once."""
        ...


class SystemNoiseSource:
    """Words from the operating system's cryptographic generator (`os.urandom`).

    It has no state: it is safe in threads and after a fork, and nothing in memory reveals past noise.

    Examples
    --------
    >>> from dpnb.mechanisms import SystemNoiseSource
    >>> SystemNoiseSource().private, SystemNoiseSource().words(3).shape
    (True, (3,))
    """

    @property
    def private(self) -> bool:
        """True: these words are unpredictable."""
        return True

    def words(self, n: int) -> NDArray[np.uint64]:
        """Draw ``n`` fresh words; see `NoiseSource.words`."""
        return np.frombuffer(os.urandom(n * WORD_BITS // 8), dtype=np.uint64)


class NotPrivateSeededSource:
    """Reproducible words for tests: anyone who knows the seed can subtract the noise.

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
        self.seed = seed
        self._generator = np.random.PCG64(seed)

    @property
    def private(self) -> bool:
        """False: noise from this source protects no one."""
        return False

    def words(self, n: int) -> NDArray[np.uint64]:
        """Draw the next ``n`` words of the sequence; see `NoiseSource.words`."""
        return np.asarray(self._generator.random_raw(n), dtype=np.uint64)


def derived_source(source: NoiseSource, name: str) -> NoiseSource:
    """The source of one of several users of a source, whose words do not depend on what the others draw.

    Only a seeded source has a sequence that several users would share.

    >>> from dpnb.mechanisms import NotPrivateSeededSource
    >>> from dpnb.mechanisms.randomness import derived_source
    >>> ana, bob = (derived_source(NotPrivateSeededSource(7), name) for name in ("ana", "bob"))
    >>> bool((ana.words(3) == bob.words(3)).any())
    False
    """
    if not isinstance(source, NotPrivateSeededSource):
        return source
    text = f"{source.seed} {name}".encode()
    return NotPrivateSeededSource(int.from_bytes(hashlib.sha256(text).digest(), "big"))


def checked_words(source: NoiseSource, n: int) -> NDArray[np.uint64]:
    """Draw ``n`` words from a source and check their type and number.

    A source that returns floats or too few words would weaken the noise silently.
    """
    words: object = source.words(n)  # the annotation is not trusted
    if not isinstance(words, np.ndarray) or words.dtype != np.uint64 or words.shape != (n,):
        raise InvalidValueError(
            f"source: words(n) must return an array of n numbers of type uint64; {type(source).__name__} returned "
            f"something else; use SystemNoiseSource()"
        )
    return words
