"""Chance comes from the operating system; a seeded source says that it is not private."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from dpnb.errors import InvalidValueError
from dpnb.mechanisms.gaussian import measure
from dpnb.mechanisms.randomness import NoiseSource, NotPrivateSeededSource, SystemNoiseSource, checked_words


def test_system_words_are_the_bytes_of_os_urandom(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def urandom(n: int) -> bytes:
        asked.append(n)
        return bytes(range(n))

    monkeypatch.setattr(os, "urandom", urandom)
    words = SystemNoiseSource().words(3)
    assert asked == [24]
    assert words.dtype == np.uint64
    assert words.tobytes() == bytes(range(24))


def test_private_noise_never_touches_numpy_generators(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a predictable generator was used for private noise")

    for name in ("PCG64", "Philox", "SFC64", "MT19937", "default_rng", "Generator", "RandomState", "normal", "bytes"):
        monkeypatch.setattr(np.random, name, forbidden)
    drawn: list[int] = []
    real = os.urandom
    monkeypatch.setattr(os, "urandom", lambda n: drawn.append(n) or real(n))
    measure([0] * 5, sigma=1.0, source=SystemNoiseSource())
    assert drawn[0] == 40


def test_system_words_differ_from_call_to_call() -> None:
    source = SystemNoiseSource()
    assert len({int(word) for _ in range(50) for word in source.words(20)}) == 1000


def test_only_the_system_source_calls_itself_private() -> None:
    assert SystemNoiseSource().private is True
    assert NotPrivateSeededSource(1).private is False
    assert "NotPrivate" in NotPrivateSeededSource.__name__


@pytest.mark.parametrize("source", [SystemNoiseSource(), NotPrivateSeededSource(3)])
def test_sources_keep_the_protocol(source: NoiseSource) -> None:
    assert isinstance(source, NoiseSource)
    for n in (0, 1, 1000):
        words = checked_words(source, n)
        assert words.shape == (n,)
        assert words.dtype == np.uint64


def test_seeded_words_repeat_and_continue() -> None:
    whole = NotPrivateSeededSource(7).words(10)
    again = NotPrivateSeededSource(7)
    assert [*again.words(4), *again.words(6)] == list(whole)
    assert list(NotPrivateSeededSource(8).words(10)) != list(whole)


@pytest.mark.parametrize(
    "bad", [np.zeros(2), np.zeros(3, np.uint64), np.zeros((2, 1), np.uint64), np.zeros(2, np.int64), [0, 0], None]
)
def test_source_that_gives_no_words_is_refused(bad: Any) -> None:
    class Broken:
        private = True

        def words(self, n: int) -> Any:
            return bad

    with pytest.raises(InvalidValueError, match=r"source: words\(n\) must return.*Broken.*SystemNoiseSource"):
        measure([1, 2], sigma=1.0, source=Broken())
