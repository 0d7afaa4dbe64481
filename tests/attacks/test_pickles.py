"""Objects from the other side that run code when they are read.

Kind: beyond
Fault: Queries are sent as serialised plans, and answers as pickles; reading either can run code of the sender. And a
session that can be pickled takes the table with it.
Reported: pola-rs/polars#14623 (LazyFrame.deserialize may use pickle); opendp/opendp#1841 (pickle bombs in queries);
https://github.com/dscc-admin-ch/lomas/blob/v0.4.1/server/lomas_server/dp_queries/dp_querier.py (lomas)
dpnb: A request is JSON with declared fields, none of which is code; whatever else arrives is refused before anything
is built from it. Sessions and frames cannot be pickled; a pickled answer holds released numbers only.
"""

from __future__ import annotations

import base64
import contextlib
import json
import pickle
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

import dpnb
from attacks.common import session
from dpnb.wire.decoding import decode_envelope
from dpnb.wire.limits import WireError

RUN: list[str] = []


def note(text: str) -> None:
    RUN.append(text)


class Bomb:
    def __reduce__(self) -> Any:
        return note, ("boom",)


BOMB = pickle.dumps(Bomb())
TEXT = base64.b64encode(BOMB).decode()
BODIES = [
    BOMB,
    TEXT.encode(),
    json.dumps({"id": "a1", "request": {"request": "release", "plan": TEXT}}).encode(),
    json.dumps(
        {"id": "a1", "request": {"request": "release", "plan": {"py/object": "attacks.test_pickles.Bomb"}}}
    ).encode(),
    json.dumps({"id": "a1", "request": {"request": TEXT, "name": "a"}}).encode(),
    json.dumps({"id": TEXT, "request": {"request": "close", "name": "a"}}).encode(),
]


def attack(read: Callable[[bytes], Any]) -> list[int]:
    """Bodies that ran code, or were accepted."""
    found = []
    for number, body in enumerate(BODIES):
        RUN.clear()
        accepted = False
        with contextlib.suppress(Exception):  # bytes that are no pickle at all
            read(body)
            accepted = True
        if accepted or RUN:
            found.append(number)
    return found


def unpickled(body: bytes) -> Any:
    return pickle.loads(body)


def test_dpnb_resists() -> None:
    assert attack(decode_envelope) == []
    for body in BODIES:
        with pytest.raises(WireError):
            decode_envelope(body)


def test_dpnb_pickles_no_table() -> None:
    made = session(pd.DataFrame({"x": [87131.0] * 9}), {"x": dpnb.Bounded(0, 1)})
    for each in (made, made.frame, made.frame["x"], made.frame["x"].mean()):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            pickle.dumps(each)
    assert b"87131" not in pickle.dumps(made.frame.count().release(mu=1))


def test_the_control_is_caught() -> None:
    assert attack(unpickled) == [0]
