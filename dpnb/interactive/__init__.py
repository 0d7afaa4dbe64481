"""Interactive mechanisms: several can run concurrently on one budget, each with a budget chosen adaptively.

Mathematics, without a table: `protocol`, `stopping`, `descent.steps`, `threshold.above_threshold` and
`threshold.gaussian_scan`.

With the tables, the filter and the ledger of a session: `mechanism` is the base class; `sub_session`, `partition`,
`threshold.scan`, `noise_reduction` and `descent.gradient_descent` are the kinds.  Each converts an analyst's arguments
to a `launch_request` (`threshold.options` and `descent.options` validate the longer lists), `launcher` looks it up,
previews or charges it, and `launch_verbs` has the session's methods that launch.  `calls` executes what a remote
session sends.
"""

from dpnb.interactive.mechanism import InteractiveMechanism
from dpnb.interactive.stopping import AbsoluteError, ExcludesValue, RelativeError, StoppingRule

__all__ = ["AbsoluteError", "ExcludesValue", "InteractiveMechanism", "RelativeError", "StoppingRule"]
