"""Interactive mechanisms: alive at once, interleaved freely, every budget chosen after the earlier answers.

===================  =========================================================================================
`protocol`           what every one of them can do, and how each is charged
`refinement`         one linear query measured again and again: each look pays only for what it adds
`stopping`           when an answer is good enough
`descent`            where noisy gradients lead, and when they lead no further
`only_once`          what must not exist twice: secret noise with a count of its answers
`gaussian_scan`      sums against thresholds with Gaussian noise, for a declared number of questions
`above_threshold`    the sparse vector technique on exact integers with exact noise
===================  =========================================================================================

They know numbers and noise; sessions tie them to a table, a filter and a ledger.
"""

from dpnb.interactive.protocol import InteractiveMechanism
from dpnb.interactive.stopping import AbsoluteError, Apart, RelativeError, StoppingRule

__all__ = ["AbsoluteError", "Apart", "InteractiveMechanism", "RelativeError", "StoppingRule"]
