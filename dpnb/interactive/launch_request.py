"""The request to launch a mechanism of any kind."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dpnb._core.accountant.tree import KINDS
from dpnb._request import AnyMechanism, LaunchMechanism
from dpnb.accounting.losses import GDP, Loss
from dpnb.errors import InvalidValueError
from dpnb.mechanisms.randomness import NoiseSource
from dpnb.schema import encodable

MAX_NAME_LENGTH = 100
"""Maximum number of characters of a launch's name."""


def title_of(words: str) -> str:
    """The name of a launch whose analyst gives none: what it is about, with a digest where that is too long."""
    if len(words) <= MAX_NAME_LENGTH:
        return words
    ending = f"... {hashlib.sha256(words.encode()).hexdigest()[:8]}"
    return words[: MAX_NAME_LENGTH - len(ending)] + ending


@dataclass(frozen=True)
class LaunchRequest:
    """A launch, before it is looked up in the ledger or charged."""

    name: object  # as given by the analyst, not yet checked
    mechanism: AnyMechanism
    loss: Loss = field(default_factory=lambda: GDP(0))  # charged at launch; zero if charged step by step
    resolved: Mapping[str, Any] = field(default_factory=dict)  # derived from the arguments and fixed at launch, as JSON
    facts: list[tuple[str, str]] = field(default_factory=list)  # further facts that a dry run shows
    # draws the hidden noise, which is kept in the process that holds the table
    draw: Callable[[NoiseSource], Any] | None = None

    @property
    def title(self) -> str:
        """The kind of mechanism and the name."""
        return f"{KINDS[type(self.mechanism)]} {self.name}"

    @property
    def stored(self) -> LaunchMechanism:
        """What is sent and stored; refuses a name that is none."""
        name = self.name
        if not (isinstance(name, str) and name.strip() and len(name) <= MAX_NAME_LENGTH and encodable(name)):
            raise InvalidValueError(
                f"name: must be a non-empty str of at most {MAX_NAME_LENGTH} characters; got {name!r}"
            )
        return LaunchMechanism(name, self.mechanism)
