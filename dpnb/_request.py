"""Requests as values: one struct for each kind, from the method that makes it to the row of the ledger that holds it.

A method makes the struct, a client sends it, the service decodes and checks it, and the ledger stores its text beside
the charge, from which answers, log, audit and statement read it.  A request is identified by its key, the digest of the
text, with the node that pays and the version of the table: equal requests of two analysts stay two.  The order of a
batch does not count in its key; a launch and its close are identified by the name.

A struct has what is requested, as written, and nothing that is computed from it or that is known of the session, but
for `BatchTable`, which is only stored.
"""

from __future__ import annotations

import hashlib
import re
from fractions import Fraction
from functools import cached_property, lru_cache

import msgspec

from dpnb._plan.measurements import AnyView, RegressionModel
from dpnb._plan.plan import GroupLevel, PartSource, Plan, TableSource
from dpnb._target import MAX_STORED_BITS, Target
from dpnb.accounting.exact import to_text
from dpnb.schema import Key

_DIGITS = f"[1-9][0-9]{{0,{MAX_STORED_BITS * 31 // 100}}}"
_NUMBER = re.compile(f"0|-?{_DIGITS}(?:/{_DIGITS})?", re.ASCII)

# --- interactive mechanisms -------------------------------------------------------------------------------------------


class MechanismRequest(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="mechanism"
):
    """Base class of the interactive mechanisms, as the analyst launches them."""


class PartitionTable(MechanismRequest, frozen=True, tag="partition"):
    """Disjoint parts of a table."""

    source: TableSource
    by: GroupLevel
    max_parts_per_unit: int | None = None  # that is enforced; None if a unit cannot be in more parts than are charged

    def part(self, key: Key) -> PartSource:
        """The rows of a part."""
        return PartSource(self.source, self.by, key, self.max_parts_per_unit)


class DelegateBudget(MechanismRequest, frozen=True, tag="sub_session"):
    """A part of the budget for a session of its own."""

    filter: str
    budget: dict[str, str] | None = None  # as `dpnb.Budget.to_json` writes it
    share: Fraction | None = None  # of what remains; as written, so that the same share is the same launch


class ScanThreshold(MechanismRequest, frozen=True, tag="above_threshold"):
    """A stream of comparisons with a threshold: with Laplace noise (epsilon), or with Gaussian noise (mu)."""

    threshold: Fraction  # in the answers' units
    epsilon: Fraction | None = None
    max_positives: int = 1
    monotonic: bool = False
    return_values: bool = False
    mu: Fraction | None = None
    max_queries: int | None = None  # declared number, for Gaussian noise


class ReduceNoise(MechanismRequest, frozen=True, tag="noise_reduction"):
    """One query, observed until it is precise enough."""

    plan: Plan
    view: AnyView
    initial_mu: Fraction | None = None
    max_mu: Fraction | None = None


class DescendGradient(MechanismRequest, frozen=True, tag="gradient_descent"):
    """A regression fitted by noisy gradients."""

    rows: Plan
    model: RegressionModel
    terms: tuple[str, ...]  # names of the model's terms
    mu: Fraction  # of a step
    steps: int
    clip_norm: float
    learning_rate: Fraction | None
    chains: int
    public_size: int | None
    check_every: int | None
    check_mu: Fraction | None
    patience: int
    start: tuple[float, ...] | None  # coefficients, for columns scaled to [-1, 1]


AnyMechanism = PartitionTable | DelegateBudget | ScanThreshold | ReduceNoise | DescendGradient

# --- kinds of requests ------------------------------------------------------------------------------------------------


class Request(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="request", dict=True
):
    """Base class of the requests."""

    @cached_property
    def text(self) -> str:
        """The request as JSON; a query as it was written, and two spellings of one query are two requests."""
        return _ENCODER.encode(self).decode()

    @cached_property
    def key(self) -> str:
        """The identity of the request."""
        return hashlib.sha256(self.text.encode()).hexdigest()


class Release(Request, frozen=True, tag="release"):
    """The release of a query."""

    plan: Plan
    view: AnyView
    target: Target


class ReleaseBatch(Request, frozen=True, tag="batch"):
    """The release of a batch of queries; one target for the whole batch, or one half-width for each query."""

    releases: tuple[Release, ...]  # as the analyst wrote them, in order; for a loss, each has that of the whole batch

    @cached_property
    def key(self) -> str:
        """The identity of the batch, in which the order of its queries does not count."""
        return _digest("batch", *sorted({one.text for one in self.releases}))

    def key_of(self, table: int) -> str:
        """The key of the row of one of the tables that are measured, of which the first has that of the batch."""
        return _digest(self.key, str(table)) if table else self.key


class BatchTable(Request, frozen=True, tag="table"):
    """One of the tables that a batch measures, in the row of the ledger that is charged for it; it is never sent.

    The rows of a batch are written in one transaction, so their ids are consecutive.  Those of one aggregation follow
    one another, and `tables` has the indices of the levels of each of them, in the order of its groups.
    """

    plan: Plan
    view: AnyView  # of a query with this aggregation
    target: Target  # of the first query
    index: int  # place of this table among the rows of the batch
    count: int  # number of rows of the batch
    start: int  # index of the first row with the same aggregation
    sizes: tuple[int, ...]  # number of keys of each level
    tables: tuple[tuple[int, ...], ...]

    @property
    def levels(self) -> tuple[int, ...]:
        """The levels of this table, in the order of its groups."""
        return self.tables[self.index - self.start]

    def all_ids(self, row: int) -> tuple[int, ...]:
        """Ids of all rows of the batch, from that of this one."""
        return tuple(range(row - self.index, row - self.index + self.count))

    def ids(self, row: int) -> tuple[int, ...]:
        """Ids of the rows with the same aggregation, in the order of `tables`."""
        first = row - self.index + self.start
        return tuple(range(first, first + len(self.tables)))


class SelectGroups(Request, frozen=True, tag="select"):
    """The selection of the largest groups of a count."""

    plan: Plan
    winners: int  # number of groups
    epsilon: Fraction  # loss in pure DP


class LaunchMechanism(Request, frozen=True, tag="launch"):
    """The launch of an interactive mechanism, whose cost and derived values follow from what is launched."""

    name: str
    mechanism: AnyMechanism


class CloseMechanism(Request, frozen=True, tag="close"):
    """The close of an interactive mechanism."""

    name: str  # of the launch


class CompareWithThreshold(Request, frozen=True, tag="compare"):
    """The comparison of a count or sum with a threshold, in an above-threshold mechanism."""

    name: str  # of the launch
    plan: Plan  # of the count or sum
    threshold: Fraction  # in the answer's units


class RequestBudget(Request, frozen=True, tag="request_budget"):
    """A request to the curator for a larger cap, which charges nothing."""

    releases: tuple[Release, ...]
    why: str  # the curator reads it


AnyRequest = (
    Release | ReleaseBatch | SelectGroups | LaunchMechanism | CloseMechanism | CompareWithThreshold | RequestBudget
)
"""What a client sends."""


class Conditions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What must hold when a request is charged; no part of its identity."""

    inside: str = ""  # node of the mechanism that makes the request, which must be open
    combined: bool = False  # an observation must be one that can be combined with earlier ones
    at_most: Fraction | None = None  # largest additional loss, as mu squared


ALWAYS = Conditions()


# --- their texts ------------------------------------------------------------------------------------------------------


def encode(value: object) -> object:
    """An exact number as msgspec encodes it."""
    if isinstance(value, Fraction):
        return to_text(value)
    raise NotImplementedError  # what msgspec expects of a hook for any other type


def decode(kind: type, value: object) -> object:
    """An exact number from its text, in lowest terms and of limited length."""
    if kind is not Fraction:
        raise NotImplementedError  # as in `encode`
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        numerator, _, denominator = value.partition("/")
        number = Fraction(int(numerator), int(denominator or "1"))
        if to_text(number) == value:
            return number
    raise ValueError("must be an exact number in lowest terms, such as '1/10'")


BATCH_TABLE = '{"request":"table"'
"""How the text of a `BatchTable` begins."""

_ENCODER = msgspec.json.Encoder(order="deterministic", enc_hook=encode)

# Made once, at import: see `dpnb.wire.decoding`.
_STORED: msgspec.json.Decoder[AnyRequest | BatchTable] = msgspec.json.Decoder(AnyRequest | BatchTable, dec_hook=decode)


def request_from(text: str) -> AnyRequest | BatchTable:
    """The request with this text; `msgspec.MsgspecError` if it is none."""
    return _cached(text) if len(text) <= MAX_CACHED else _STORED.decode(text)


MAX_CACHED = 10_000
"""Characters of a text that is kept with its request: a client may send requests that take megabytes."""

_cached = lru_cache(maxsize=256)(_STORED.decode)  # many rows are read several times


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()
