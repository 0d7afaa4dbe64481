"""Sources of random bits: the only place in dpnb that draws randomness.

The privacy guarantee holds for bits that cannot be predicted or replayed, so the only private source is the operating
system's.  A seeded generator exists for tests, under a name that prevents accidental use.

Uniform integers, and events of probability exp(-g) for a rational g, are drawn exactly, with integers only:

1. An integer uniform below n: k words are one integer W below R = 2^(64 k), R >= n.  W is drawn again while it is not
   below the largest multiple of n in R, with probability at most 1/2; then all values of W mod n are equally likely.
2. An event of probability exp(-g), 0 <= g <= 1: events of probabilities g/1, g/2, g/3, ... are drawn until one fails.
   The first k all succeed with probability g^k/k!, so the index of the first failure is odd with probability
   sum over even k of (g^k/k! - g^(k+1)/(k+1)!) = exp(-g).
3. For g > 1: the event happens if floor(g) events of probability exp(-1) and one of probability exp(-(g - floor(g)))
   all do; the first that does not decides.

The running time depends on what is drawn; timing is outside the guarantee.

References
----------
- Canonne, Kamath, Steinke 2020, *The Discrete Gaussian for Differential Privacy*, arXiv:2004.00010v4, Algorithm 1.
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

    def words(self, n: int) -> NDArray[np.uint64]:
        """Draw `n` fresh words, which are returned only once."""


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
    """Reproducible words for tests, equal for equal seeds on every platform.

    Anyone who knows the seed can subtract the noise.
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


# --- uniform integers and events of probability exp(-g) for a rational g ----------------------------------------------


_WORD_VALUES = 1 << WORD_BITS
# Enough for nearly every draw; drawing words one by one would take most of the time.
_WORDS_AT_ONCE = 16
# A draw undecided after 4,096 words, times the number of words in its scale, means a broken source, not bad luck.
_MAX_REFILLS = 256


class ExactBernoulli:
    """Uniform integers and exact Bernoulli events for one draw.

    Words are taken from the source several at a time.  Unused words are discarded with this object after the draw, so
    no word is used by two draws.  `bits`, the length of the longest integer in the draw, determines after how many
    words the source is refused as broken.
    """

    __slots__ = ("_refills_left", "_source", "_words")

    def __init__(self, source: NoiseSource, bits: int) -> None:
        self._source = source
        self._refills_left = _MAX_REFILLS * (1 + bits // WORD_BITS)
        self._words: list[int] = []

    def below(self, n: int) -> int:
        """A uniform integer in [0, n), n >= 1: step 1 of the module's docstring."""
        while True:
            drawn, values = self._word(), _WORD_VALUES
            while values < n:
                drawn, values = drawn << WORD_BITS | self._word(), values << WORD_BITS
            rest = drawn % n
            if drawn - rest <= values - n:
                return rest

    def happens(self, top: int, bottom: int) -> bool:
        """An event of probability exp(-top/bottom), 0 <= top <= bottom: step 2 of the module's docstring."""
        index = 1 if top < bottom else 2  # the first event is certain for exp(-1)
        while self.below(index * bottom) < top:
            index += 1
        return index % 2 == 1

    def happens_beyond_one(self, top: int, bottom: int) -> bool:
        """An event of probability exp(-top/bottom) for any top >= 0: step 3 of the module's docstring."""
        whole, rest = divmod(top, bottom)
        return all(self.happens(1, 1) for _ in range(whole)) and self.happens(rest, bottom)

    def _word(self) -> int:
        if not self._words:
            self._refill()
        return self._words.pop()

    def _refill(self) -> None:
        if not self._refills_left:
            raise InvalidValueError(
                "source: the bits must be random, but thousands of words did not decide one draw, which has "
                "probability below 2**-200; use SystemNoiseSource()"
            )
        self._refills_left -= 1
        self._words = checked_words(self._source, _WORDS_AT_ONCE).tolist()
