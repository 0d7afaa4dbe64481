"""Interactive mechanisms: several can be open on one budget, and each budget is chosen after the earlier answers.

Mathematics, without a table: `protocol`, `stopping`, `descent_steps`, `only_once`, `gaussian_scan`, `above_threshold`,
`allotment`.

On the tables, the filter and the ledger of a session: `mechanism` is what they share; `sub_session`, `partition`,
`threshold_scan`, `noise_reduction` and `gradient_descent` are the kinds.  Each makes a `launch_request` of an analyst's
arguments (`threshold_options` and `descent_options` check the longer lists), `launcher` finds, previews or charges it,
and `launch_verbs` are the methods of a session for it.
"""

from dpnb.interactive.protocol import InteractiveMechanism
from dpnb.interactive.stopping import AbsoluteError, ExcludesValue, RelativeError, StoppingRule

__all__ = ["AbsoluteError", "ExcludesValue", "InteractiveMechanism", "RelativeError", "StoppingRule"]
