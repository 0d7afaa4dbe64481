"""The terms that are explained where they occur on the screen, each in one sentence.

The browser underlines them and shows the sentence on hover and focus.  ``docs/glossary.md`` lists the same sentences.
"""

from __future__ import annotations

from typing import Final

NOISE_INTERVAL = "noise interval"
POPULATION_INTERVAL = "population interval"
IN_THIS_TABLE = "in this table"
IN_THE_POPULATION = "in the population"
"""What a verdict is about: an interval that covers the noise alone says nothing about a population."""

TERMS: Final = {
    "budget left": (
        "The share of the budget that no answer has used, in the scale in which the filter adds costs; in code it is "
        "the headroom."
    ),
    "headroom": "The share of the budget that is left, in the scale in which the filter adds costs.",
    "privacy unit": (
        "The entity whose presence is protected: one row, or all rows that share a value of one column, for example "
        "all rows of one person."
    ),
    "odometer": (
        "A bound on the privacy loss of the answers so far, in the sense that is stated beside it; it refuses nothing, "
        "and its scale is not that of the budget."
    ),
    "filter": (
        "The rule that admits or refuses each query so that all answers together stay within the budget, even if "
        "queries are chosen because of earlier answers."
    ),
    "mu": (
        "The privacy loss of an answer: with loss mu, detecting one privacy unit is at least as hard as telling a draw "
        "from a normal distribution with mean 0 from one with mean mu, both with variance 1; the squares of mu add up."
    ),
    "rho": (
        "The privacy loss of an answer under zero-concentrated differential privacy (zCDP); rho adds up, and a "
        "loss mu counts as half of its square."
    ),
    "epsilon": (
        "The bound on the privacy loss: one privacy unit changes the probability of any outcome by at most the factor "
        "e^epsilon, apart from delta."
    ),
    "delta": (
        "The probability mass that a guarantee allows outside its bound epsilon; it is chosen far smaller than 1 "
        "divided by the number of privacy units."
    ),
    "GDP": (
        "Gaussian differential privacy with parameter mu: all answers together reveal at most as much about one "
        "privacy unit as a single answer with the loss mu would."
    ),
    NOISE_INTERVAL: (
        "An interval that contains, with the stated confidence, the exact answer for this table, after clamping and "
        "contribution bounds; it covers the noise that was added, not the sampling of the rows from a population."
    ),
    POPULATION_INTERVAL: (
        "An interval that contains, with the stated confidence, the value in the population from which the privacy "
        "units are a random sample, after clamping and contribution bounds; it covers sampling and noise, for a "
        "question that was fixed beforehand."
    ),
    "DP": (
        "Differential privacy with parameters epsilon and delta: a bound on how much everything that is released can "
        "depend on any one privacy unit."
    ),
}
"""One sentence for each term, by the term as it occurs in texts."""
