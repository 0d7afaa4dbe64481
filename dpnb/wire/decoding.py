"""Decoding of requests from an untrusted client, whose form and limits it checks.

A body is accepted only if it is exactly what `encode_envelope` writes for some request, apart from the order of fields:
no unknown or repeated fields anywhere (also inside plans, whose types would ignore them), no default written out, no
number that is not finite, and nothing beyond the limits of `dpnb.wire.limits`.  Sizes are checked before anything is
built from them.

An error names the field, never its value, so that no log line and no page repeats what a client sent.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import msgspec

from dpnb._request import (
    ALWAYS,
    AnyRequest,
    CloseMechanism,
    CompareWithThreshold,
    LaunchMechanism,
    Release,
    ReleaseBatch,
    RequestBudget,
    SelectGroups,
    decode,
    encode,
)
from dpnb._target import Target
from dpnb.schema import encodable
from dpnb.wire.limits import (
    CAP,
    CONFIDENCE,
    LOSS,
    MAX_BODY,
    MAX_DEPTH,
    MAX_ID,
    MAX_INTEGER,
    MAX_LIST,
    MAX_NAME,
    MAX_PENDING,
    MAX_QUERIES,
    MAX_REQUESTED,
    MAX_SHOWN,
    MAX_TEXT,
    MAX_VALUES,
    MAX_WHY,
    THRESHOLD,
    WIDTH,
    AmountRange,
    WireError,
    checked_amount,
)
from dpnb.wire.messages import Envelope

# Made once, at import: msgspec may crash where two threads need a type for the first time at once.
_ENVELOPES: msgspec.json.Decoder[Envelope] = msgspec.json.Decoder(Envelope, dec_hook=decode)

_STRINGS = re.compile(r'"(?:[^"\\]+|\\.)*"?', re.DOTALL)  # also an unfinished one, so that it is searched once
_PUNCTUATION = re.compile(r"[\[\]{},]")
HEAD = re.compile(r"(?:[0-9a-f]{64})?", re.ASCII)
"""The hash of a row, or nothing."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
_PATH = re.compile(r" - at `(\$[^`]*)`")

Path = tuple[Any, str | int] | None
"""The path of the list or object around a value, and its place there; None for the body.

Nested, since a copy of the path for each value would take the depth times the memory of the body."""


def encode_envelope(envelope: Envelope) -> bytes:
    """The body of a request."""
    return msgspec.json.encode(envelope, order="deterministic", enc_hook=encode)


def decode_envelope(body: bytes) -> Envelope:
    """The request that a client sent; `WireError` if it is not what `encode_envelope` writes, or exceeds a limit.

    >>> from dpnb._request import CloseMechanism
    >>> decode_envelope(encode_envelope(Envelope("a1", CloseMechanism("by plan")))).request
    CloseMechanism(name='by plan')
    """
    sent = _parsed(body)
    try:
        envelope = _ENVELOPES.decode(body)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise WireError(
            f"{_path_of(str(error))}: has a field that is not known, a field of another type, or lacks one"
        ) from None
    _refuse_differences(sent, json.loads(encode_envelope(envelope)))
    _check_envelope(envelope)
    return envelope


def _parsed(body: bytes) -> Any:
    """The body as lists, dicts and values, within the limits."""
    if len(body) > MAX_BODY:
        raise WireError(f"body: must have at most {MAX_BODY:,} bytes; got more; request fewer groups or keys at once")
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise WireError("body: must be JSON in UTF-8; got other bytes") from None
    _refuse_deep(text)
    try:
        sent = json.loads(
            text, object_pairs_hook=_fields, parse_int=_integer, parse_float=_finite, parse_constant=_refuse_constant
        )
    except (json.JSONDecodeError, RecursionError):
        raise WireError("body: must be JSON; got another text") from None
    for path, value in _values(sent):
        if isinstance(value, str) and (len(value) > MAX_TEXT or not encodable(value)):
            raise WireError(f"{_shown(path)}: a text must be Unicode of at most {MAX_TEXT:,} characters; got another")
        if isinstance(value, list | dict) and len(value) > MAX_LIST:
            raise WireError(f"{_shown(path)}: must have at most {MAX_LIST:,} elements; got more")
    return sent


def _refuse_deep(text: str) -> None:
    """Refuse too many levels or values, before a parser sees them."""
    depth = values = 0
    for found in _PUNCTUATION.finditer(_STRINGS.sub('""', text)):
        mark = found[0]
        depth += (mark in "[{") - (mark in "]}")
        values += mark in "[{,"
        if depth > MAX_DEPTH or values > MAX_VALUES:
            raise WireError(
                f"body: must have at most {MAX_DEPTH} levels and {MAX_VALUES:,} values; got more; request fewer groups "
                "or keys at once"
            )


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise WireError("body: an object must have each field once; got one twice")
    return fields


def _integer(text: str) -> int:
    number = int(text) if len(text) <= 20 else MAX_INTEGER + 1
    if abs(number) > MAX_INTEGER:
        raise WireError("body: a whole number must fit 64 bits; got a larger one")
    return number


def _finite(text: str) -> float:
    number = float(text) if len(text) <= 400 else math.inf
    if not math.isfinite(number):
        raise WireError("body: a number must be finite and have at most 400 digits; got another")
    return number


def _refuse_constant(text: str) -> float:
    raise WireError("body: a number must be finite; got another")


def _values(sent: Any) -> Iterator[tuple[Path, Any]]:
    """Every value with its path; works at any depth.  The key of a field counts as a value of that path."""
    waiting: list[tuple[Path, Any]] = [(None, sent)]
    while waiting:
        path, value = waiting.pop()
        yield path, value
        if isinstance(value, dict):
            for key in value:
                yield path, key
            waiting += [((path, key), inner) for key, inner in value.items()]
        elif isinstance(value, list):
            waiting += [((path, index), inner) for index, inner in enumerate(value)]


def _refuse_differences(sent: Any, read: Any) -> None:
    """Refuse a body with anything that was not understood."""
    waiting: list[tuple[Path, Any, Any]] = [(None, sent, read)]
    while waiting:
        path, one, other = waiting.pop()
        if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
            waiting += [((path, key), inner, other[key]) for key, inner in one.items()]
        elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
            waiting += [((path, index), *both) for index, both in enumerate(zip(one, other, strict=True))]
        elif isinstance(one, dict | list) or isinstance(one, bool) != isinstance(other, bool) or one != other:
            raise WireError(
                f"{_shown(path)}: has a field that is not known, or one with its default value, which is left out"
            )


def _shown(path: Path) -> str:
    """A path such as ``request.plan.where``, shortened, in printable ASCII."""
    parts: list[str] = []
    while path is not None:
        path, part = path
        parts.append(re.sub(r"[^A-Za-z0-9_]", "?", str(part)[:MAX_SHOWN]))
    text = ".".join(reversed(parts)) or "body"
    return text if len(text) <= MAX_SHOWN else f"...{text[-MAX_SHOWN:]}"


def _path_of(message: str) -> str:
    """The path in an error of msgspec."""
    found = _PATH.search(message)
    path: Path = None
    for part in found[1].replace("[", ".").split(".")[1:] if found else ():
        path = path, part
    return _shown(path)


# --- what the types do not say ----------------------------------------------------------------------------------------


def _check_envelope(envelope: Envelope) -> None:
    _check_id(envelope.id, "id")
    if envelope.cell_id is not None:
        _check_text(envelope.cell_id, "cell_id", MAX_NAME)
    _check_text(envelope.node, "node", MAX_TEXT, empty=True)
    _check_number(envelope.after, "after")
    if len(envelope.pending) > MAX_PENDING:
        raise WireError(f"pending: must have at most {MAX_PENDING:,} numbers; got more")
    for row in envelope.pending:
        _check_number(row, "pending", least=1)
    if HEAD.fullmatch(envelope.head) is None:
        raise WireError("head: must be the hash of a row in hexadecimal; got another text")
    if envelope.conditions is not None:
        if envelope.conditions == ALWAYS or not isinstance(envelope.request, Release | ReleaseBatch):
            raise WireError("conditions: must be those of a release, and not the default ones; leave them out")
        _check_text(envelope.conditions.inside, "conditions.inside", MAX_TEXT, empty=True)
        _check_amount(envelope.conditions.at_most, "conditions.at_most", CAP)
    _check_request(envelope.request)


def _check_request(request: AnyRequest) -> None:
    match request:
        case Release():
            _check_target(request.target)
        case ReleaseBatch():
            _check_releases(request.releases, MAX_QUERIES)
        case SelectGroups():
            _check_number(request.winners, "request.winners", least=1)
            _check_amount(request.epsilon, "request.epsilon", LOSS)
        case LaunchMechanism() | CloseMechanism():
            _check_text(request.name, "request.name", MAX_NAME)
        case CompareWithThreshold():
            _check_text(request.name, "request.name", MAX_NAME)
            _check_amount(request.threshold, "request.threshold", THRESHOLD)
        case RequestBudget():
            _check_releases(request.releases, MAX_REQUESTED)
            _check_text(request.why, "request.why", MAX_WHY)


def _check_releases(releases: tuple[Release, ...], most: int) -> None:
    if not 1 <= len(releases) <= most:
        raise WireError(f"request.releases: must be 1 to {most} queries; got another number")
    for one in releases:
        _check_target(one.target)


def _check_target(target: Target) -> None:
    allowed = WIDTH if target.kind == "within" else LOSS
    _check_amount(target.amount, "request.target.amount", allowed)
    labels = [label for label, _ in target.amounts]
    if (target.amount is None) == (not labels) or (labels and target.kind != "within"):
        raise WireError(
            "request.target: must have one amount, or for within= an amount for each label; got another form"
        )
    if len(set(map(repr, labels))) != len(labels):
        raise WireError("request.target.amounts: labels must differ; got one twice")
    for _, amount in target.amounts:
        _check_amount(amount, "request.target.amounts", allowed)
    _check_amount(target.confidence, "request.target.confidence", CONFIDENCE)


def _check_amount(amount: Fraction | None, field: str, allowed: AmountRange) -> None:
    if amount is not None:
        checked_amount(amount, field, allowed)


def _check_number(number: int, field: str, least: int = 0) -> None:
    if not least <= number <= MAX_INTEGER:
        raise WireError(f"{field}: must be a whole number from {least} to 2**63 - 1; got another")


def _check_id(text: str, field: str) -> None:
    if len(text) > MAX_ID or not _ID.fullmatch(text):
        raise WireError(f"{field}: must be 1 to {MAX_ID} letters, digits, '.', '_' and '-'; got another text")


def _check_text(text: str, field: str, most: int, *, empty: bool = False) -> None:
    if len(text) > most or not text.isprintable() or not (text or empty):
        raise WireError(f"{field}: must be a printable text of at most {most} characters; got another")
