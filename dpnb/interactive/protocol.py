"""What every interactive mechanism can do.

An interactive mechanism answers question after question under one name, and its owner, a session, pays for it in one
of two ways that the mechanism states: all of it *at launch*, after which its answers cost nothing more, or *step by
step* as it goes, with nothing reserved.  Either way the charge is in the ledger before a row is read.  Any number may
be alive at once and be asked in any order, also between plain questions, and the analyst chooses every budget after
seeing what there was to be seen (Haney et al. 2023).

==================  ==============  ==================================================================================
kind                charged         what it is
==================  ==============  ==================================================================================
sub-session         at launch       a part of the budget, with a filter and odometers of its own
partition           step by step    one child for each key; the growth of the largest is paid
above-threshold     at launch       a stream of questions against a threshold, up to so many positive answers
noise reduction     step by step    one answer, refined until it is good enough
gradient descent    step by step    a regression, fitted by noisy gradients
==================  ==============  ==================================================================================

A launch has a name and is remembered by the ledger: launching again with the same name and arguments, in any kernel,
gives the same mechanism and costs nothing.  Hidden noise is never stored, so above-threshold answers nothing new once
its kernel is gone; what it has answered stays free.

A new version of the table needs new launches, but for sub-sessions; launching under the same name ends the old one.
"""

from __future__ import annotations

from typing import Literal, Protocol, runtime_checkable

from dpnb.accounting.losses import Loss

__all__ = ["Charged", "InteractiveMechanism", "MechanismState"]

Charged = Literal["at launch", "step by step"]
MechanismState = Literal["open", "exhausted", "closed", "unavailable"]
"""``unavailable``: its hidden noise is or was in another kernel, or it is for another version of the table."""


@runtime_checkable
class InteractiveMechanism(Protocol):
    """What every interactive mechanism can do."""

    @property
    def name(self) -> str:
        """Under which it was launched."""
        ...

    @property
    def kind(self) -> str:
        """Which of the table above."""
        ...

    @property
    def charged(self) -> Charged:
        """When its owner pays."""
        ...

    @property
    def cost(self) -> Loss:
        """What its owner has paid for it so far, in the kind of loss in which it was charged."""
        ...

    @property
    def state(self) -> MechanismState:
        """Whether it can be asked."""
        ...

    def close(self) -> None:
        """End it, for every kernel: it answers nothing new.  What was answered stays free; nothing is paid back."""
        ...
