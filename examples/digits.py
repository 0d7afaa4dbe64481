"""Digits, learned under differential privacy: with and without individual accounting.

The experiment whose results the notebook `05-individual.ipynb` shows.  It follows Feldman and Zrnic (2021, section 5):
regression of a digit on the pixels of its image, each image a unit, by noisy gradients.  Under worst-case accounting
the budget covers `STEPS` steps.  Under individual accounting each image is charged only for its own gradients, so more
steps are possible at the same noise.

Clipping norm, learning rate and number of steps are chosen on simulated images, and only the chosen values are used on
the digits.  The noise is real, so another run gives other numbers.  About five minutes on two cores:

    python examples/digits.py        # writes digits.csv beside this file, a row for each fit
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import dpnb
from dpnb.accounting import GDP
from dpnb.accounting.individual import NormFilter
from dpnb.ledger import MEMORY
from dpnb.mechanisms import ContinualCounter, NotPrivateSeededSource

STORED = Path(__file__).with_name("digits.csv")

STEPS = 15
"""Number of steps that the budget covers under worst-case accounting; it determines the noise of a step."""

EPSILONS = (0.3, 0.5, 1.0)
CLIPS = (3, 8)
RATES = (0.15, 0.5, 1.5, 5)
MULTIPLES = {"worst-case": (1,), "individual": (2, 3)}
"""Numbers of steps that are compared, as multiples of `STEPS`."""

RUNS = 10
SIMULATED_RUNS = 3

PIXELS = [f"pixel_{row}_{column}" for row in range(8) for column in range(8)]
SCHEMA = {**dict.fromkeys(PIXELS, dpnb.Bounded(0, 16)), "digit": dpnb.Categories(range(10))}
SETTING = ["accounting", "clip", "rate", "multiple"]


def real() -> tuple[pd.DataFrame, pd.DataFrame]:
    """The digits that come with scikit-learn, 80% for training and 20% for testing."""
    bunch = load_digits(as_frame=True)
    table = bunch.data[PIXELS].assign(digit=bunch.target)
    train, test = train_test_split(table, test_size=0.2, stratify=table["digit"], random_state=0)
    return train, test


def simulated(seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """As many images of ten synthetic signs: three random strokes each, shifted, bent, and noisy."""
    chance = np.random.default_rng(seed)
    row, column = np.mgrid[0:8, 0:8]
    signs = []
    for _ in range(10):
        strokes = [np.linspace(*chance.uniform(0.5, 6.5, (2, 2)), 12) for _ in range(3)]
        signs.append(np.concatenate(strokes))
    labels = chance.integers(0, 10, 1797)
    images = []
    for label in labels:
        y, x = (row + chance.normal(0, 0.6), column + chance.normal(0, 0.6))
        y, x = y + 0.15 * chance.normal() * (column - 3.5), x + 0.15 * chance.normal() * (row - 3.5)
        near = [np.exp(-((y - a) ** 2) - (x - b) ** 2) for a, b in signs[label]]
        image = 16 * np.max(near, axis=0) * chance.uniform(0.7, 1.2) + chance.normal(0, 1.5, (8, 8))
        images.append(image.round().clip(0, 16).ravel())
    table = pd.DataFrame(np.array(images), columns=PIXELS).assign(digit=labels)
    return table[:1437], table[1437:]


def accuracy(
    train: pd.DataFrame,
    test: pd.DataFrame,
    *,
    epsilon: float,
    accounting: str,
    clip: float,
    rate: float,
    multiple: int,
) -> float:
    """The fraction of test images that a private fit classifies correctly; guessing gives 0.1."""
    options: dict[str, Any] = {} if accounting == "worst-case" else {"accounting": accounting, "on_exhausted": "clip"}
    session = dpnb.Session(
        train,
        name="digits",
        schema=SCHEMA,
        budget=dpnb.Budget(epsilon=epsilon, delta=1e-5),
        public_size=len(train),
        ledger=MEMORY,
        **options,
    )
    mu = math.floor(1e6 * float(session.filter.budget.mu) / math.sqrt(STEPS)) / 1e6
    fit = session.frame.fit(
        "digit",
        on=PIXELS,
        family="multinomial",
        chains=1,
        mu=mu,
        steps=STEPS * multiple,
        clip_norm=clip,
        learning_rate=rate,
        name=f"digits, {accounting}, clip {clip}, epsilon {epsilon}",
    )
    coefficients = fit.run().estimate
    assert fit.n_steps == STEPS * multiple, fit.stop_reason
    scores = coefficients["intercept"].to_numpy() + test[PIXELS].to_numpy() @ coefficients[PIXELS].to_numpy().T
    return float((coefficients.index.to_numpy()[scores.argmax(axis=1)] == test["digit"].to_numpy()).mean())


def active_images(train: pd.DataFrame, *, epsilon: float, clip: float, rate: float, steps: int) -> pd.DataFrame:
    """How many images still take part after each step of a filtered descent, exactly and by a continual counter.

    NOT PRIVATE: its noise has a fixed seed, and it returns what a session never shows.  A tenth of each image's budget
    is reserved for the counter, which is charged once for all steps: an image is exhausted once.
    """
    chance, n = np.random.default_rng(0), len(train)
    x = np.column_stack([np.ones(n), train[PIXELS].to_numpy() / 8 - 1])
    wanted = np.eye(10)[train["digit"].to_numpy()]
    mu_squared = float(dpnb.Budget(epsilon=epsilon, delta=1e-5).loss.mu_squared)
    noise = clip / math.sqrt(mu_squared / STEPS)
    state = NormFilter(clip, norm_budget=0.9 * STEPS * clip**2, units=n)
    counter = ContinualCounter(steps, loss=GDP(math.sqrt(0.1 * mu_squared)), source=NotPrivateSeededSource(0))
    coefficients, left, rows = np.zeros((10, x.shape[1])), n, []
    for _ in range(steps):
        scores = np.exp(x @ coefficients.T)
        errors = scores / scores.sum(axis=1, keepdims=True) - wanted
        norms = np.linalg.norm(errors, axis=1) * np.linalg.norm(x, axis=1)
        state, clipped = state.step(norms)
        total = (errors * (clipped / norms)[:, None]).T @ x
        coefficients -= rate / n * (total + noise * chance.normal(size=total.shape))
        active = int(state.active.sum())
        exhausted = counter.add(left - active)
        left = active
        rows.append((active, n - exhausted.estimate, exhausted.scale))
    return pd.DataFrame(rows, columns=["active", "by the counter", "scale"], index=range(1, steps + 1))


def simulations() -> pd.DataFrame:
    """Every setting on simulated images, at the smallest and the largest epsilon."""
    rows = []
    for seed in range(SIMULATED_RUNS):
        train, test = simulated(seed)
        for epsilon in (EPSILONS[0], EPSILONS[-1]):
            for accounting, multiples in MULTIPLES.items():
                for clip, rate, multiple in [(c, r, m) for c in CLIPS for r in RATES for m in multiples]:
                    row = {"epsilon": epsilon, "accounting": accounting, "clip": clip, "rate": rate}
                    row["multiple"] = multiple
                    rows.append({"images": "simulated", **row, "accuracy": accuracy(train, test, **row)})
    return pd.DataFrame(rows)


def best_settings(results: pd.DataFrame) -> pd.DataFrame:
    """The setting with the best accuracy on simulated images, by accounting and clipping norm."""
    means = results.groupby(SETTING, as_index=False)["accuracy"].mean()
    return means.loc[means.groupby(["accounting", "clip"])["accuracy"].idxmax(), SETTING]


def on_digits(settings: pd.DataFrame) -> pd.DataFrame:
    """The accuracy on the digits, for the chosen settings."""
    train, test = real()
    rows = []
    for epsilon in EPSILONS:
        for setting in settings.to_dict("records"):
            for _ in range(RUNS):
                value = accuracy(train, test, epsilon=epsilon, **setting)
                rows.append({"images": "digits", "epsilon": epsilon, **setting, "accuracy": value})
    return pd.DataFrame(rows)


def main() -> None:
    """Choose settings, run them on the digits, and store both results."""
    results = simulations()
    digits = on_digits(best_settings(results))
    pd.concat([results, digits]).round({"accuracy": 4}).to_csv(STORED, index=False)
    print(digits.groupby(["clip", "accounting", "rate", "multiple", "epsilon"])["accuracy"].agg(["mean", "std"]))


if __name__ == "__main__":
    main()
