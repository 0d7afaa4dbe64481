"""Nobody's value and no number of rows loads a module or leaves a thread: a process shows both to everyone in it.

Each table is read and queried in a process of its own, which prints its modules and threads.  The control loads a
module of the standard library for a complex number.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from waiting import LIMIT

SCRIPT = """
import datetime, decimal, fractions, os, sys, threading, warnings
import numpy as np, pandas as pd
import dpnb
from dpnb._backends.memory.prepare import values

warnings.simplefilter("ignore")

def run(kind):
    if kind == "control":
        value_of = values.value_of
        def loading(value):
            if isinstance(value, complex):
                import tabnanny
            return value_of(value)
        values.value_of = loading

    class Odd:
        def __str__(self):
            raise ValueError

    numbers = [decimal.Decimal("1.5"), fractions.Fraction(1, 3), 1 + 2j, "7", b"7", pd.NA, 10**400, True, Odd(), [1]]
    numbers += ["nan"]
    texts = [1, 2.5, "\\ud800", b"a", None, Odd(), "\\u00c9", "x" * 100_000, datetime.date(2020, 1, 1)]
    times = ["2020-01-01T00:00:00+05:00", "Jan 3 2020", "2020-13-45", "now", datetime.date(9999, 12, 31), 1e300]
    times += [pd.Timestamp("2020", tz="Europe/Berlin"), np.datetime64("99999-01-01"), "10:30 PM EST", pd.Period("2020")]
    rows = 2**18 + 12 if kind == "many" else 12

    def column(usual, odd):
        return pd.Series(odd * (kind in ("odd", "control")) + [usual] * rows, dtype=object)[:rows]

    contents = {"x": (1.0, numbers), "t": ("a", texts), "c": ("p", texts), "d": ("2020-01-01", times)}
    contents["who"] = ("u", numbers + texts)
    table = pd.DataFrame({name: column(*cells) for name, cells in contents.items()})
    session = dpnb.Session(
        table,
        name="t",
        privacy_unit="who",
        max_rows_per_unit=2,
        budget=dpnb.Budget(epsilon=50, delta=1e-6, discovery_delta=1e-7),
        schema={
            "x": dpnb.Bounded(0, 10),
            "t": dpnb.Text(max_length=5),
            "c": dpnb.Categories(["p", 1]),
            "d": dpnb.Dates("2019-01-01", "2021-01-01"),
        },
        ledger=":memory:",
    )
    f = session.frame
    asked = [f["x"].mean(), f.groupby("c")["x"].sum(), f.groupby(f["d"].dt.month).count(), f.discover("t")]
    asked += [f.groupby(f["t"].str.upper(), keys=["A"]).count(), f[f["d"] > "2020-01-01"]["x"].quantile(0.5)]
    for query in asked:
        query.release(mu=1)
    print(sorted(sys.modules), sorted(thread.name for thread in threading.enumerate()))

for kind in sys.argv[1:]:
    child = os.fork()
    if not child:
        run(kind)
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


def observed(*kinds: str) -> list[str]:
    """The modules and threads of processes that have each queried a table, forked from one that has imported dpnb."""
    run = [sys.executable, "-c", SCRIPT, *kinds]
    done = subprocess.run(run, capture_output=True, text=True, timeout=LIMIT, check=True)
    found = done.stdout.splitlines()
    assert len(found) == len(kinds)
    assert all("dpnb._backends.memory.execute" in modules for modules in found)
    return found


@pytest.mark.slow  # five processes, one of them with many rows
@pytest.mark.waits
def test_every_table_leaves_the_same_modules_and_threads() -> None:
    usual, *others = observed("usual", "usual", "odd", "many", "control")
    assert [one == usual for one in others] == [True, True, True, False]
