"""Interactive mechanisms: several can run concurrently on one budget, each with a budget chosen adaptively.

Without a table: the stopping rules, `above_threshold`, `gaussian_scan` and the steps in `descent`.

With the tables, the filter and the ledger of a session: each kind of mechanism converts an analyst's arguments to a
`mechanism.LaunchRequest`, `launcher` looks it up, previews or charges it, and `launch_verbs` has the session's methods
that launch.  `calls` executes what a remote session sends.
"""

from dpnb.interactive.mechanism import InteractiveMechanism
from dpnb.interactive.stopping import AbsoluteError, ExcludesValue, RelativeError, StoppingRule

__all__ = ["AbsoluteError", "ExcludesValue", "InteractiveMechanism", "RelativeError", "StoppingRule"]
