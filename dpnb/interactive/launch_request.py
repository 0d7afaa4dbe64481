"""What a launch asks for, whichever mechanism it is of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dpnb.accounting.losses import GDP, Loss

LONGEST_NAME = 100
"""Characters of a launch's name."""


@dataclass(frozen=True)
class LaunchRequest:
    """A launch, before it is found in the ledger or charged.

    Parameters
    ----------
    kind : str
        Of mechanism.
    name : object
        As the analyst gave it.
    asked : mapping
        The arguments, as JSON: the same again are the same launch.
    loss : Loss
        What is charged at launch; nothing for what is charged step by step.
    about : mapping
        What follows from the arguments, decided at the launch; as JSON.
    facts : list of (str, str)
        What else a dry run says.
    """

    kind: str
    name: object
    asked: Mapping[str, Any]
    loss: Loss = field(default_factory=lambda: GDP(0))
    about: Mapping[str, Any] = field(default_factory=dict)
    facts: list[tuple[str, str]] = field(default_factory=list)

    @property
    def stored(self) -> Any:
        """The arguments as the ledger gives them back."""
        return json.loads(json.dumps(self.asked))
