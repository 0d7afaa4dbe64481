"""Adversaries who choose every loss after seeing the losses before it, many paths at once.

A boundary is a function of V, the sum of 2 rho; an adversary turns the realised loss, V and the distance to the
boundary into the size of the next answer; a mechanism turns that size into a drawn loss and its contribution to V.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ADVERSARIES",
    "BLIND",
    "Adversary",
    "Array",
    "Boundary",
    "gaussian",
    "most",
    "randomised_response",
    "response_v",
    "share_of_crossings",
    "shares_of_crossings",
]

Array = NDArray[np.float64]
Boundary = Callable[[Array], Array]
Mechanism = Callable[[np.random.Generator, Array], tuple[Array, Array]]


def gaussian(rng: np.random.Generator, mu: Array) -> tuple[Array, Array]:
    """A Gaussian answer of this mu, neighbours at the full distance: mean mu^2/2, variance mu^2, V = mu^2."""
    return mu**2 / 2 + mu * rng.standard_normal(len(mu)), mu**2


def response_v(epsilon: Array) -> Array:
    """V of an epsilon-DP answer: 2 epsilon tanh(epsilon/2), which is at most epsilon^2."""
    return 2 * epsilon * np.tanh(epsilon / 2)


def randomised_response(rng: np.random.Generator, epsilon: Array) -> tuple[Array, Array]:
    """The worst epsilon-DP answer: the loss is epsilon with chance e^epsilon/(1 + e^epsilon), otherwise -epsilon."""
    truthful = rng.random(len(epsilon)) < 1 / (1 + np.exp(-epsilon))
    return np.where(truthful, epsilon, -epsilon), response_v(epsilon)


def _hug(loss: Array, v: Array, distance: Array) -> Array:
    # Small steps when near, bold ones when far.  Without a floor the steps would shrink with the distance and hardly a
    # path would ever arrive.
    return np.maximum(distance / 6, np.sqrt(v) / 100)


def _small_coins(loss: Array, v: Array, distance: Array) -> Array:
    return np.full(len(v), 0.1)


def _bold_when_behind(loss: Array, v: Array, distance: Array) -> Array:
    return np.sqrt(v * np.where(loss < v / 2 + np.sqrt(v), 0.3, 0.01))


def _geometric(loss: Array, v: Array, distance: Array) -> Array:
    return np.sqrt(v / 50)


@dataclass(frozen=True)
class Adversary:
    """How large the next answer is, what kind it is, and when nothing more is to be gained.

    Parameters
    ----------
    size : callable
        Realised loss, V and distance to the boundary to the next mu or epsilon, elementwise.
    mechanism : callable
    first : float
        The first mu or epsilon.
    end : float
        A path is left alone once its V is beyond this.
    steps : int
        Answers at most.
    """

    size: Callable[[Array, Array, Array], Array]
    mechanism: Mechanism
    first: float
    end: float
    steps: int


ADVERSARIES = {
    "hug": Adversary(_hug, gaussian, 1e-3, 1e12, 1200),
    "geometric": Adversary(_geometric, gaussian, 0.03, 3e3, 800),
    "bold when behind": Adversary(_bold_when_behind, gaussian, 1e-2, 1e12, 600),
    "hug by randomised response": Adversary(_hug, randomised_response, 1e-2, 1e2, 500),
    "small coins": Adversary(_small_coins, randomised_response, 0.1, 8.0, 800),
}
BLIND = ("geometric", "bold when behind", "small coins")
"""Those whose answers do not depend on the boundary."""


def share_of_crossings(bound: Boundary, adversary: Adversary, *, paths: int, seed: int) -> float:
    """How often the realised loss is ever above the boundary."""
    return shares_of_crossings([bound], adversary, paths=paths, seed=seed)[0]


def shares_of_crossings(bounds: Sequence[Boundary], adversary: Adversary, *, paths: int, seed: int) -> list[float]:
    """How often the realised loss is ever above each boundary, on the same paths; an adversary looks at the first."""
    rng = np.random.default_rng(seed)
    loss, v = np.zeros(paths), np.zeros(paths)
    size = np.full(paths, adversary.first)
    crossed = [np.zeros(paths, np.bool_) for _ in bounds]
    ended = np.zeros(len(bounds))
    for _ in range(adversary.steps):
        drawn, cost = adversary.mechanism(rng, size)
        loss, v = loss + drawn, v + cost
        each = v[:1] if v[0] == v[-1] and (v == v[0]).all() else v  # one is enough where that of all paths is the same
        levels = [bound(each) for bound in bounds]
        for was, level in zip(crossed, levels, strict=True):
            was |= loss > level
        distance, goes_on = levels[0] - loss, v < adversary.end
        if not goes_on.all():
            ended += [np.count_nonzero(was[~goes_on]) for was in crossed]
            loss, v, distance, *crossed = (array[goes_on] for array in (loss, v, distance, *crossed))
            if not len(v):
                break
        size = adversary.size(loss, v, distance)
    return [float(share) for share in (ended + [np.count_nonzero(was) for was in crossed]) / paths]


def most(delta: float, paths: int) -> float:
    """A share that an event of probability at most delta exceeds with probability below 1e-7.

    Six standard deviations of the binomial, by its Chernoff bound, for delta at least 0.01 and 50,000 paths or more.
    """
    return float(delta + 6 * np.sqrt(delta * (1 - delta) / paths))
