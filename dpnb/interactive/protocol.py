"""The common interface of all interactive mechanisms.

An interactive mechanism answers several queries under one name, and its owner, a session, is charged in one of two
ways: in full *at launch*, after which its answers cost nothing more, or *step by step*, with nothing reserved.  In both
cases the charge is in the ledger before a row is read.  Any number of mechanisms may be open at once and be queried in
any order, interleaved with plain queries, and the analyst may choose each budget after seeing all earlier answers
(Haney et al. 2023).

==================  ==============  ==================================================================================
kind                charged         description
==================  ==============  ==================================================================================
sub-session         at launch       a part of the budget, with its own filter and odometers
partition           step by step    one session for each key; charged by the growth of the largest
above-threshold     at launch       a stream of queries compared with a threshold, up to `max_positives` positives
noise reduction     step by step    one answer, refined until it is accurate enough
gradient descent    step by step    a regression fitted by noisy gradients
==================  ==============  ==================================================================================

A launch has a name and is recorded in the ledger: launching again with the same name and arguments, in any kernel,
returns the same mechanism at no cost.  Hidden noise is never stored, so above-threshold gives no new answers after its
kernel has ended; its recorded answers remain free.

A new version of the table needs new launches, except for sub-sessions if it declares the same columns and limits;
launching under the same name closes the old one.
"""

from __future__ import annotations

from typing import Literal, Protocol, runtime_checkable

from dpnb.accounting.losses import Loss

__all__ = ["Charged", "InteractiveMechanism", "MechanismState"]

Charged = Literal["at launch", "step by step"]
MechanismState = Literal["open", "exhausted", "closed", "unavailable"]
"""``unavailable``: the hidden noise is or was in another kernel, or the launch is for another version of the table."""


@runtime_checkable
class InteractiveMechanism(Protocol):
    """The common interface of all interactive mechanisms.

    Examples
    --------
    >>> import dpnb
    >>> session = dpnb.Session.rehearse(
    ...     name="people",
    ...     budget=dpnb.Budget(epsilon=1, delta=1e-6),
    ...     schema={"age": dpnb.Bounded(0, 100), "town": dpnb.Categories(["a", "b"])},
    ... )
    >>> from dpnb.interactive import InteractiveMechanism
    >>> parts = session.partition("town")
    >>> isinstance(parts, InteractiveMechanism), parts.kind, parts.charged
    (True, 'partition', 'step by step')
    """

    @property
    def name(self) -> str:
        """The name under which it was launched."""
        ...

    @property
    def kind(self) -> str:
        """``sub-session``, ``partition``, ``above-threshold``, ``noise reduction`` or ``gradient descent``."""
        ...

    @property
    def charged(self) -> Charged:
        """When its owner is charged: ``at launch`` or ``step by step``."""
        ...

    @property
    def cost(self) -> Loss:
        """The privacy loss that its owner accounts for; `session.log` says what the filter was charged for it."""
        ...

    @property
    def state(self) -> MechanismState:
        """``open``, ``exhausted``, ``closed`` or ``unavailable``; only an open mechanism gives new answers."""
        ...

    def close(self) -> None:
        """Close the mechanism for every kernel.  Recorded answers remain free; nothing is refunded."""
        ...
