"""What a hostile client may put into a body: everything but the exact form is refused, by type, without an echo."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import msgspec
import pytest

from dpnb._plan.expressions.nodes import Column, Compare, Literal
from dpnb._plan.measurements import Count, PlainView, Sum
from dpnb._plan.plan import GroupLevel, Plan
from dpnb.wire import decoding
from dpnb.wire.amounts import CAP, LOSS, THRESHOLD, amount_from_text, amount_to_text, cap_to_text
from dpnb.wire.calls import CloseMechanism, LaunchMechanism, Release, ReleaseBatch, Request, TargetArguments
from dpnb.wire.decoding import decode_request, encode_request
from dpnb.wire.limits import MAX_DEPTH, WireError

PLAN = Plan(Sum(Column("x")), Compare(">", Column("x"), Literal(1.5)), (GroupLevel("g", Column("g")),))
RELEASE = Request("r-1", Release(PLAN, PlainView(), TargetArguments("mu", "1/10")), cell_id="c", pending=(1, 2))


def body_of(request: Request = RELEASE) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(encode_request(request))
    return parsed


def refusal(body: object) -> str:
    with pytest.raises(WireError) as error:
        decode_request(body if isinstance(body, bytes) else json.dumps(body).encode())
    return str(error.value)


@pytest.mark.parametrize(
    "request_",
    [
        RELEASE,
        Request("a", CloseMechanism(3), node='5 "a"'),
        Request("a", LaunchMechanism("partition", "by g", {"parts": {"deep": [1, 2.5, None, True, "é"]}})),
        Request("a", ReleaseBatch(((PLAN, PlainView()),), (TargetArguments("share", "1/100"),), "1/9")),
        Request("a", Release(PLAN, PlainView(), TargetArguments("within", None, ((("a", 1), "1/2"), ("b", "3"))))),
    ],
)
def test_a_request_comes_back_equal(request_: Request) -> None:
    assert decode_request(encode_request(request_)) == request_


@pytest.mark.parametrize(
    "path",
    [(), ("call",), ("call", "plan"), ("call", "plan", "aggregation"), ("call", "plan", "where"), ("call", "target")],
)
def test_an_unknown_field_is_refused_at_every_level(path: tuple[str, ...]) -> None:
    body = body_of()
    inner = body
    for key in path:
        inner = inner[key]
    inner["extra"] = 1
    assert "has a field that is not known" in refusal(body)


def test_without_the_comparison_an_unknown_field_of_a_plan_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    body = body_of()
    body["call"]["plan"]["extra"] = 1
    monkeypatch.setattr(decoding, "_refuse_differences", lambda *_: None)
    assert decode_request(json.dumps(body).encode()) == RELEASE  # the control: plans do not forbid unknown fields


def test_a_repeated_field_is_refused() -> None:
    text = encode_request(Request("a", CloseMechanism(3))).decode()
    assert "one twice" in refusal(text.replace('"launch":3', '"launch":2,"launch":3').encode())


@pytest.mark.parametrize("number", ["1e400", "NaN", "Infinity", "-Infinity", "9" * 30, "-" + "9" * 3000])
def test_a_number_is_finite_and_short(number: str) -> None:
    text = encode_request(RELEASE).decode().replace("1.5", number)
    assert "number" in refusal(text.encode())
    assert number not in refusal(text.encode())


def nested(levels: int) -> bytes:
    return b'{"id":"a","call":{"call":"launch","mechanism":"partition","name":"a","arguments":{"a":%s}}}' % (
        b"[" * levels + b"]" * levels
    )


def test_depth_is_limited_before_anything_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert decode_request(nested(100))
    for levels in (200, 5_000, 500_000):
        assert "levels" in refusal(nested(levels))
    monkeypatch.setattr(decoding, "_refuse_deep", lambda text: None)
    assert decode_request(nested(200))  # the control


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b" " * (2**20 + 1), "bytes"),
        (b"[" + b"1," * 300_000 + b"1]", "values"),
        (b'{"id":"' + b"a" * 20_000 + b'"}', "characters"),
        (b'{"' + b"a" * 20_000 + b'":1}', "characters"),
        (b"[" + b"1," * 150_000 + b"1]", "elements"),
        (b'"' + b'\\"' * 400_000, "JSON"),
        (b'{"id":"\xff"}', "UTF-8"),
        (b'{"id":"\\ud800"}', "Unicode"),
        (b'{"id":', "JSON"),
        (b"", "JSON"),
        (b"null", "body"),
        (b"[]", "body"),
    ],
)
def test_sizes_are_limited(body: bytes, what: str) -> None:
    start = time.perf_counter()
    assert what in refusal(body)
    assert time.perf_counter() - start < 20


def test_nothing_that_was_sent_is_repeated() -> None:
    secret = "<b>secret</b>\x1b[31m"
    for path in (("id",), ("call", "call"), ("call", "plan", "aggregation", "of"), ("call", "target", "kind")):
        body = body_of()
        inner: Any = body
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = secret
        assert "secret" not in refusal(body)
        assert refusal(body).isprintable()
    body = body_of()
    body["call"][secret * 300] = 1
    assert len(refusal(body)) < 200
    assert "<" not in refusal(body)


@pytest.mark.parametrize("text", ["0", "-1/10", "2/20", "0.1", "1e-3", "1/0", "01/10", "1/" + "9" * 70, "1" * 9, "١"])
def test_a_loss_is_an_exact_amount_in_range(text: str) -> None:
    body = body_of()
    body["call"]["target"]["amount"] = text
    assert "call.target.amount" in refusal(body)


def test_amounts() -> None:
    assert amount_from_text("-5/2", "threshold", THRESHOLD) == Fraction(-5, 2)
    assert amount_to_text(Fraction(1, 3), "mu", LOSS) == "1/3"
    with pytest.raises(WireError, match="200 bits"):
        amount_to_text(Fraction(1, 3) + Fraction(1, 2**200), "mu", LOSS)
    for cost in (Fraction(0), Fraction(7, 3**300), Fraction(10**6 + 1, 3**5), Fraction(2**300 + 1, 2**299)):
        assert 0 <= amount_from_text(cap_to_text(cost), "at_most", CAP) - cost < Fraction(1, 10**25)


@pytest.mark.parametrize(
    "change",
    [
        {"id": ""},
        {"id": "a" * 101},
        {"id": "a b"},
        {"id": "../a"},
        {"cell_id": "a\nb"},
        {"node": "\x00"},
        {"after": -1},
        {"after": 2**63},
        {"pending": [0]},
        {"pending": [1] * 10_001},
        {"node": ""},  # a default that is written out
        {"after": True},
        {"id": 5},
    ],
)
def test_fields_of_the_request(change: dict[str, Any]) -> None:
    assert refusal({**body_of(), **change})


def test_a_target_has_one_form() -> None:
    for target in (
        {"kind": "mu"},
        {"kind": "mu", "amounts": [["a", "1"]]},
        {"kind": "within", "amount": "1", "amounts": [["a", "1"]]},
        {"kind": "within", "amounts": [["a", "1"], ["a", "2"]]},
        {"kind": "mu", "amount": "1", "confidence": "1"},
        {"kind": "mu", "amount": "1", "confidence": "-1/2"},
    ):
        body = body_of()
        body["call"]["target"] = target
        assert "target" in refusal(body)


def test_a_batch_has_a_target_for_each_query() -> None:
    query = (Plan(Count()), PlainView())
    target = TargetArguments("mu", "1")
    for call in (ReleaseBatch((), ()), ReleaseBatch((query,), ()), ReleaseBatch((query,) * 257, (target,) * 257)):
        assert "queries" in refusal(msgspec.json.encode(Request("a", call)))


def test_a_deep_and_wide_body_takes_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """An attack: a path for every value of a list, each as long as the body is deep."""
    body = b"[" * (MAX_DEPTH - 1) + b"[" + b"0," * 20_000 + b"0]" + b"]" * (MAX_DEPTH - 1)

    def memory() -> int:
        tracemalloc.start()
        try:
            assert "body" in refusal(body)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert memory() < 150 * len(body)

    def values(sent: Any) -> Iterator[tuple[Any, Any]]:
        waiting: list[tuple[tuple[Any, ...], Any]] = [((), sent)]
        while waiting:
            path, value = waiting.pop()
            yield None, value
            if isinstance(value, list):
                waiting += [((*path, index), inner) for index, inner in enumerate(value)]

    monkeypatch.setattr(decoding, "_values", values)  # the control: whole paths
    assert memory() > 500 * len(body)
