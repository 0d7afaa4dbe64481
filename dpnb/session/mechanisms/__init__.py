"""Interactive mechanisms of a session: tied to its table, its filter and its ledger.

==============  ===============================================================================
`mechanism`     what they share: a launch in the ledger, a state, an end
`launches`      the verbs that a session has for them
`launching`     named, charged before anything is read, found again under the same name
`sub_session`   a part of the budget, handed to a session of its own
`partition`     one child for each key, paid for by the largest
`scan`          questions against a threshold
`reduction`     one answer, refined until it is good enough
`descent`       a regression, fitted by noisy gradients; `descent_terms` checks what it is launched with
==============  ===============================================================================
"""

from dpnb.session.mechanisms.descent import Descent
from dpnb.session.mechanisms.launches import Launches
from dpnb.session.mechanisms.launching import Mechanisms
from dpnb.session.mechanisms.partition import Partition
from dpnb.session.mechanisms.reduction import NoiseReduction
from dpnb.session.mechanisms.scan import Scan
from dpnb.session.mechanisms.sub_session import Sub

__all__ = ["Descent", "Launches", "Mechanisms", "NoiseReduction", "Partition", "Scan", "Sub"]
