"""What a hostile client may put into a body: everything but the exact form is refused, by type, without an echo."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from msgspec.structs import replace

from dpnb._plan.expressions.nodes import Column, Compare, Literal
from dpnb._plan.measurements import Count, PlainView, Sum
from dpnb._plan.plan import GroupLevel, Plan
from dpnb._request import (
    BatchTable,
    CloseMechanism,
    CompareWithThreshold,
    Conditions,
    LaunchMechanism,
    PartitionTable,
    Release,
    ReleaseBatch,
    RequestBudget,
    SelectGroups,
    request_from,
)
from dpnb._target import Target
from dpnb.wire import decoding
from dpnb.wire.decoding import decode_envelope, encode_envelope
from dpnb.wire.limits import (
    CAP,
    LOSS,
    MAX_DEPTH,
    THRESHOLD,
    WireError,
    amount_from_text,
    checked_amount,
    limit_to_send,
)
from dpnb.wire.messages import Envelope

PLAN = Plan(Sum(Column("x")), Compare(">", Column("x"), Literal(1.5)), (GroupLevel("g", Column("g")),))
TENTH = Target("mu", Fraction(1, 10))
RELEASE = Envelope("r-1", Release(PLAN, PlainView(), TENTH), cell_id="c", pending=(1, 2))
CLOSE = CloseMechanism("by g")


def body_of(request: Envelope = RELEASE) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(encode_envelope(request))
    return parsed


def refusal(body: object) -> str:
    with pytest.raises(WireError) as error:
        decode_envelope(body if isinstance(body, bytes) else json.dumps(body).encode())
    return str(error.value)


@pytest.mark.parametrize(
    "request_",
    [
        RELEASE,
        Envelope("a", CLOSE, node='5 "a"'),
        Envelope("a", LaunchMechanism("é", PartitionTable("", PLAN.group_by[0], 2))),
        Envelope(
            "a",
            ReleaseBatch((Release(PLAN, PlainView(), Target("share", Fraction(1, 100))),)),
            Conditions(at_most=Fraction(1, 9)),
        ),
        Envelope("a", Release(PLAN, PlainView(), TENTH), Conditions("7", combined=True, at_most=Fraction(0))),
        Envelope(
            "a",
            Release(PLAN, PlainView(), Target("within", None, ((("a", 1), Fraction(1, 2)), ("b", Fraction(3))))),
        ),
        Envelope(
            "a", Release(PLAN, PlainView(), Target("rho", Fraction(3), (), Fraction(9, 10), True, True, (("a",),)))
        ),
        Envelope("a", SelectGroups(PLAN, 2, Fraction(1, 10))),
        Envelope("a", CompareWithThreshold("line", PLAN, Fraction(-1, 2))),
        Envelope("a", RequestBudget((Release(PLAN, PlainView(), TENTH),), "for the report")),
    ],
)
def test_a_request_comes_back_equal(request_: Envelope) -> None:
    assert decode_envelope(encode_envelope(request_)) == request_


@pytest.mark.parametrize(
    "path",
    [
        *((), ("request",), ("request", "plan"), ("request", "plan", "aggregation"), ("request", "plan", "where")),
        *(("request", "target"), ("conditions",)),
    ],
)
def test_an_unknown_field_is_refused_at_every_level(path: tuple[str, ...]) -> None:
    body = body_of(replace(RELEASE, conditions=Conditions(combined=True)))
    inner = body
    for key in path:
        inner = inner[key]
    inner["extra"] = 1
    assert "has a field that is not known" in refusal(body)


def test_without_the_comparison_an_unknown_field_of_a_plan_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    body = body_of()
    body["request"]["plan"]["extra"] = 1
    monkeypatch.setattr(decoding, "_refuse_differences", lambda *_: None)
    assert decode_envelope(json.dumps(body).encode()) == RELEASE  # the control: plans do not forbid unknown fields


def test_a_repeated_field_is_refused() -> None:
    text = encode_envelope(Envelope("a", CLOSE)).decode()
    assert "one twice" in refusal(text.replace('"name":"by g"', '"name":"by h","name":"by g"').encode())


@pytest.mark.parametrize("number", ["1e400", "NaN", "Infinity", "-Infinity", "9" * 30, "-" + "9" * 3000])
def test_a_number_is_finite_and_short(number: str) -> None:
    text = encode_envelope(RELEASE).decode().replace("1.5", number)
    assert "number" in refusal(text.encode())
    assert number not in refusal(text.encode())


def nested(levels: int) -> bytes:
    condition = b'{"op":"not","inner":' * levels + b'{"op":"isna","inner":{"op":"column","name":"x"}}' + b"}" * levels
    plan = b'{"aggregation":{"of":"count"},"where":%s}' % condition
    rest = b'"view":{"view":"plain"},"target":{"kind":"mu","amount":"1/10"}'
    return b'{"id":"a","request":{"request":"release","plan":%s,%s}}' % (plan, rest)


def test_depth_is_limited_before_anything_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert decode_envelope(nested(100))
    for body in (nested(200), nested(5_000), b"[" * 500_000):
        assert "levels" in refusal(body)
    monkeypatch.setattr(decoding, "_refuse_deep", lambda text: None)
    assert decode_envelope(nested(200))  # the control


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
    for path in (("id",), ("request", "call"), ("request", "plan", "aggregation", "of"), ("request", "target", "kind")):
        body = body_of()
        inner: Any = body
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = secret
        assert "secret" not in refusal(body)
        assert refusal(body).isprintable()
    body = body_of()
    body["request"][secret * 300] = 1
    assert len(refusal(body)) < 200
    assert "<" not in refusal(body)


@pytest.mark.parametrize("text", ["0", "-1/10", "2/20", "0.1", "1e-3", "1/0", "01/10", "1/" + "9" * 70, "1" * 9, "١"])
def test_a_loss_is_an_exact_amount_in_range(text: str) -> None:
    body = body_of()
    body["request"]["target"]["amount"] = text
    assert "request.target.amount" in refusal(body)


def test_amounts() -> None:
    assert amount_from_text("-5/2", "threshold", THRESHOLD) == Fraction(-5, 2)
    assert checked_amount(Fraction(1, 3), "mu", LOSS) == Fraction(1, 3)
    with pytest.raises(WireError, match="200 bits"):
        checked_amount(Fraction(1, 3) + Fraction(1, 2**200), "mu", LOSS)
    for cost in (Fraction(0), Fraction(7, 3**300), Fraction(10**6 + 1, 3**5), Fraction(2**300 + 1, 2**299)):
        assert checked_amount(limit_to_send(cost), "at_most", CAP) == limit_to_send(cost)
        assert 0 <= limit_to_send(cost) - cost < Fraction(1, 10**25)


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
        body["request"]["target"] = target
        assert "target" in refusal(body)


def test_a_batch_has_queries_each_with_a_target() -> None:
    release = Release(Plan(Count()), PlainView(), TENTH)
    for number in (0, 257):
        assert "queries" in refusal(encode_envelope(Envelope("a", ReleaseBatch((release,) * number))))
    assert len(decode_envelope(encode_envelope(Envelope("a", ReleaseBatch((release,) * 256)))).request.releases) == 256  # type: ignore[union-attr]
    body = body_of(Envelope("a", ReleaseBatch((release,))))
    del body["request"]["releases"][0]["target"]
    assert "request.releases" in refusal(body)


def test_a_request_for_budget_is_limited() -> None:
    release = Release(Plan(Count()), PlainView(), TENTH)
    for number in (0, 21):
        assert "queries" in refusal(encode_envelope(Envelope("a", RequestBudget((release,) * number, "why"))))
    for why in ("", "a" * 501, "a\x1b"):
        assert "request.why" in refusal(encode_envelope(Envelope("a", RequestBudget((release,), why))))


def test_a_table_of_a_batch_is_never_sent() -> None:
    table = BatchTable(PLAN, PlainView(), TENTH, 0, 1, 0, (2,), ((0,),))
    assert request_from(table.text) == table
    body = body_of()
    body["request"] = json.loads(table.text)
    assert "request" in refusal(body)


@pytest.mark.parametrize(
    "change",
    [
        {},  # the default ones
        {"combined": False},
        {"inside": ""},
        {"at_most": "-1"},
        {"at_most": "2/20"},
        {"at_most": 1},
        {"inside": "\x00"},
        {"inside": "a" * 10_001},
        {"combined": 1},
    ],
)
def test_conditions_are_those_of_a_release(change: dict[str, Any]) -> None:
    assert refusal({**body_of(), "conditions": change})
    for request in (CLOSE, SelectGroups(PLAN, 2, Fraction(1, 10)), CompareWithThreshold("line", PLAN, Fraction(1))):
        envelope = Envelope("a", request, Conditions(combined=True))
        assert "conditions" in refusal(encode_envelope(envelope))


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
