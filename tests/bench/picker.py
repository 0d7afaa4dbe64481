"""How long the first picker takes in a real kernel, from the start of its cell to its last message, and what is sent.

    python tests/bench/picker.py [rounds]

Prints medians in milliseconds over new kernels: `import dpnb`, `%load_ext dpnb`, the first picker, a later one; and the
bytes of the first picker's messages.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jupyter_client.manager import start_new_kernel

TIMED = """
import time
_start = time.perf_counter()
{code}
print(1000 * (time.perf_counter() - _start))
"""
DECLARED = """
import pandas as pd
session = dpnb.Session(
    pd.DataFrame({"x": [1.0, 2.0] * 500, "g": ["a", "b"] * 500}), name="picker", ledger=":memory:",
    budget=dpnb.Budget(epsilon=1, delta=1e-6),
    schema={"x": dpnb.Bounded(0, 10), "g": dpnb.Categories(["a", "b"])},
)
"""
ASKED = ["session.frame['x'].mean()", "session.frame.groupby('g')['x'].sum()"]


@contextmanager
def kernel() -> Iterator[Any]:
    """The client of a new kernel, ended afterwards."""
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def told(client: Any, code: str) -> str:
    """What a cell prints."""
    messages = messages_of(client, code)
    return "".join(message["content"]["text"] for message, _ in messages if message["msg_type"] == "stream")


def messages_of(client: Any, code: str) -> list[tuple[Any, float]]:
    """The messages of a cell, run as a browser runs it, and after how many milliseconds each came."""
    content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}
    request = client.session.msg("execute_request", content, metadata={"cellId": "cell"})
    found: list[tuple[Any, float]] = []
    start = time.perf_counter()
    client.shell_channel.send(request)
    while True:
        message = client.get_iopub_msg(timeout=60)
        if message["parent_header"].get("msg_id") != request["header"]["msg_id"]:
            continue
        found.append((message, 1000 * (time.perf_counter() - start)))
        if message["msg_type"] == "error":
            raise RuntimeError(message["content"]["evalue"])
        if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
            return found


def size_of(message: Any) -> int:
    """Bytes of a message's content and buffers."""
    buffers = sum(len(buffer) for buffer in message.get("buffers", []))
    return len(json.dumps(message["content"], default=str)) + buffers


def measured() -> dict[str, float]:
    """One new kernel."""
    with kernel() as client:
        found = {
            "import dpnb": float(told(client, TIMED.format(code="import dpnb"))),
            "%load_ext dpnb": float(
                told(client, TIMED.format(code="get_ipython().run_line_magic('load_ext', 'dpnb')"))
            ),
        }
        found["session"] = float(told(client, TIMED.format(code=DECLARED)))
        for name, code in zip(["first picker", "later picker"], ASKED, strict=True):
            messages = messages_of(client, code)
            sent = [(message, at) for message, at in messages if message["msg_type"] in ("comm_open", "display_data")]
            if not any("anywidget" in json.dumps(message["content"]) for message, _ in sent):
                raise RuntimeError("the cell displayed no picker")
            found[name] = max(at for _, at in sent)
            found[f"{name}, bytes"] = sum(size_of(message) for message, _ in sent)
        return found


def first_sight(rounds: int = 5) -> dict[str, float]:
    """Median seconds from the start of the first picker's cell to its last message, over new kernels."""
    return {"first sight": statistics.median(measured()["first picker"] for _ in range(rounds)) / 1000}


def main() -> None:
    """Print the medians."""
    rounds = [measured() for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 5)]
    for name in rounds[0]:
        print(f"{name:<22}{statistics.median(found[name] for found in rounds):>10,.0f}")


if __name__ == "__main__":
    main()
