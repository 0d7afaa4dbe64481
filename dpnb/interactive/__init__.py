"""Interactive mechanisms: several can run concurrently on one budget, each with a budget chosen adaptively.

Mathematics, without a table: `protocol`, `stopping`, `descent_steps`, `only_once`, `gaussian_scan`, `above_threshold`,
`allotment`.

On the tables, the filter and the ledger of a session: `mechanism` is the base class; `sub_session`, `partition`,
`threshold_scan`, `noise_reduction` and `gradient_descent` are the kinds.  Each turns an analyst's arguments into a
`launch_request` (`threshold_options` and `descent_options` validate the longer lists), `launcher` finds, previews or
charges it, and `launch_verbs` has the session's methods for it.
"""

from dpnb.interactive.protocol import InteractiveMechanism
from dpnb.interactive.stopping import AbsoluteError, ExcludesValue, RelativeError, StoppingRule

__all__ = ["AbsoluteError", "ExcludesValue", "InteractiveMechanism", "RelativeError", "StoppingRule"]
