"""The request to launch a mechanism of any kind."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dpnb.accounting.losses import GDP, Loss
from dpnb.mechanisms.randomness import NoiseSource

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

    kind: str
    name: object  # as given by the analyst, not yet checked
    arguments: Mapping[str, Any]  # as JSON; equal arguments identify the same launch
    loss: Loss = field(default_factory=lambda: GDP(0))  # charged at launch; zero if charged step by step
    resolved: Mapping[str, Any] = field(default_factory=dict)  # derived from the arguments and fixed at launch, as JSON
    facts: list[tuple[str, str]] = field(default_factory=list)  # further facts that a dry run shows
    # draws the hidden noise, which is kept in the process that holds the table
    draw: Callable[[NoiseSource], Any] | None = None

    @property
    def stored_arguments(self) -> Any:
        """The arguments as the ledger returns them."""
        return json.loads(json.dumps(self.arguments))
