"""The target of a release: the precision or the loss at which the answer is to be known.

Every method with the arguments ``mu``, ``rho``, ``epsilon``, ``share``, ``within`` and so on makes a `Target` of them;
this one value is then priced, charged, sent and stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import wraps
from inspect import Parameter, signature
from typing import Any, Literal, NoReturn, TypeVar, get_args

import msgspec
import numpy as np

from dpnb._plan.constants import constant
from dpnb._plan.unreleased import closest
from dpnb.accounting.exact import Number, decimal_down, exact, positive, shown
from dpnb.errors import InvalidValueError, RequestError
from dpnb.schema import Key

# --- requested amounts ------------------------------------------------------------------------------------------------


MIN_AMOUNT, MAX_AMOUNT = Fraction(1, 10**100), Fraction(10**100)
"""Limits of a requested share or error; the square of a noise scale is then a normal double."""

MIN_LOSS, MAX_LOSS = Fraction(1, 10**12), Fraction(10**6)
"""Limits of a requested mu or epsilon; those of rho are their squares."""

MAX_BITS = 200
"""The largest number of bits of the numerator and the denominator of a requested loss or share.

The digits of every double in the range are fewer."""


MAX_STORED_BITS = 1100
"""The same of other numbers of a request, which may be any double: what a ledger stores can be read again."""


def checked_amount(value: Any, name: str) -> Fraction:
    """A requested amount (a loss, a share or an error), between `MIN_AMOUNT` and `MAX_AMOUNT`."""
    number = positive(value, name=name)
    if not MIN_AMOUNT <= number <= MAX_AMOUNT:
        raise InvalidValueError(f"{name}: must lie between 1e-100 and 1e100; got {shown(value)}; give another amount")
    return refuse_long(number, name, value, MAX_STORED_BITS)


def checked_loss(value: Any, name: str, *, bits: int = MAX_BITS) -> Fraction:
    """A requested mu, rho, epsilon or share of a loss, between `MIN_LOSS` and `MAX_LOSS` (``rho``: their squares)."""
    number = positive(value, name=name)
    least, most, words = MIN_LOSS, MAX_LOSS, "1e-12 and 1e6"
    if name == "rho":
        least, most, words = least**2, most**2, "1e-24 and 1e12"
    if not least <= number <= most:
        raise InvalidValueError(f"{name}: must lie between {words}; got {shown(value)}; give another amount")
    return refuse_long(number, name, value, bits)


def refuse_long(number: Fraction, name: str, value: object, bits: int = MAX_BITS) -> Fraction:
    """The number, if its numerator and denominator have at most `bits` bits, so that sums stay short."""
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > bits:
        raise InvalidValueError(
            f"{name}: must be a fraction whose numerator and denominator have at most {bits} bits each, which is "
            f"{bits * 3 // 10} digits; got {shown(value)}; round it, for example to {decimal_down(number):.6g}"
        )
    return number


# --- the target of a release ------------------------------------------------------------------------------------------


TargetKind = Literal["mu", "rho", "epsilon", "share", "within"]

KINDS: tuple[TargetKind, ...] = get_args(TargetKind)
"""Kinds of targets."""

DEFAULT_CONFIDENCE = exact(0.95)

MIN_ALPHA = Fraction(1, 10**100)
"""The smallest error probability: divided among very many intervals, it remains a normal double."""

Label = Key | tuple[Key, ...]
"""A group's key (a tuple for several levels), or the name of a statistic."""

Keys = tuple[tuple[Key, ...], ...]
"""Keys of groups, each with one value for each level."""

Within = Number | Mapping[Any, Number]
"""The half-width of all groups, or those of single groups or statistics."""


class Target(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The target of a release, with the options of its intervals."""

    kind: TargetKind
    amount: Fraction | None = None  # as written; None for a ``within=`` with labels
    amounts: tuple[tuple[Label, Fraction], ...] = ()  # half-widths of single groups or statistics in ``within=``
    confidence: Fraction = DEFAULT_CONFIDENCE  # of the intervals
    simultaneous: bool = False  # all intervals hold at once with that confidence
    final: bool = False  # the first observation is the only one
    groups: Keys = ()  # keys of the groups to which the target applies; all groups if empty

    def __post_init__(self) -> None:
        if self.confidence == DEFAULT_CONFIDENCE:  # omitted where it is this very object
            msgspec.structs.force_setattr(self, "confidence", DEFAULT_CONFIDENCE)

    @property
    def alpha(self) -> Fraction:
        """Probability that an interval does not contain the exact answer."""
        return 1 - self.confidence

    @property
    def words(self) -> str:
        """The target as it was written, for example ``mu=0.3``."""
        if self.amount is None:
            return f"{self.kind}={{{', '.join(f'{label!r}: {float(amount):.6g}' for label, amount in self.amounts)}}}"
        return f"{self.kind}={float(self.amount):.6g}"

    def to_arguments(self) -> dict[str, Any]:
        """The arguments of `dpnb.Query.release` that make this target, without those that are the defaults."""
        return {
            self.kind: dict(self.amounts) if self.amount is None else self.amount,
            **({} if self.confidence == DEFAULT_CONFIDENCE else {"confidence": self.confidence}),
            **({"simultaneous": True} if self.simultaneous else {}),
            **({"final": True} if self.final else {}),
            **({"groups": list(self.groups)} if self.groups else {}),
        }


def target_from(
    mu: Number | None = None,
    rho: Number | None = None,
    epsilon: Number | None = None,
    share: Number | None = None,
    within: Within | None = None,
    confidence: Number = 0.95,
    simultaneous: bool = False,
    final: bool = False,
    groups: Keys = (),
    *,
    verb: str = "release",
) -> Target:
    """Check the arguments of a preview or release: exactly one target, and numbers in their ranges.

    The `verb` is the method of the analyst, for the message.
    """
    amounts = zip(KINDS, (mu, rho, epsilon, share, within), strict=True)
    given = {kind: value for kind, value in amounts if value is not None}
    if len(given) != 1:
        refuse_kinds(given, verb)
    ((kind, value),) = given.items()
    return target_of(kind, value, confidence, simultaneous, final, groups)


def refuse_kinds(given: Mapping[TargetKind, Within], verb: str) -> NoReturn:
    """Refuse no target, and several kinds of them."""
    got = ", ".join(f"{kind}={shown(value)}" for kind, value in given.items()) or "none"
    raise RequestError(
        f"{verb}: give exactly one of mu=, rho=, epsilon=, share=, within=; got {got}; write for example "
        f"{example_call(verb)}"
    )


def target_of(
    kind: TargetKind,
    value: Within,
    confidence: Number = 0.95,
    simultaneous: bool = False,
    final: bool = False,
    groups: Keys = (),
) -> Target:
    """As `target_from`, of a given kind."""
    level = exact(confidence, name="confidence")
    if not 0 < level < 1:
        raise RequestError(
            f"confidence: must lie between 0 and 1, both excluded; got {shown(confidence)}; 0.95 is usual"
        )
    if 1 - level < MIN_ALPHA:
        raise RequestError(f"confidence: must be at most 1 - 1e-100; got {shown(confidence)}; 0.95 is usual")
    refuse_long(level, "confidence", confidence, MAX_STORED_BITS)
    for name, flag in (("simultaneous", simultaneous), ("final", final)):
        if not isinstance(flag, bool | np.bool_):
            raise RequestError(f"{name}: must be True or False; got {flag!r}")
    amounts: tuple[tuple[Label, Fraction], ...] = ()
    amount = None
    if hasattr(value, "to_dict"):  # a pandas Series by group
        value = value.to_dict()
    if isinstance(value, Mapping):
        if kind != "within" or not value:
            raise RequestError(f"{kind}: only within= may be a mapping, with at least one entry; got {value!r}")
        amounts = tuple((_label(label), checked_amount(width, f"within[{label!r}]")) for label, width in value.items())
    else:
        amount = checked_amount(value, kind) if kind == "within" else checked_loss(value, kind)
        if kind == "share" and amount > 1:
            raise RequestError(f"share: must be at most 1, the whole remaining budget; got {shown(value)}")
    return Target(kind, amount, amounts, level, bool(simultaneous), bool(final), groups)


# --- arguments without a name, and unknown names ----------------------------------------------------------------------

M = TypeVar("M", bound=Callable[..., Any])

LARGEST_COPIED = 0.5
"""The largest number without a name that is a share in the line to copy: ``release(1)`` would spend everything."""


def named_arguments(method: M) -> M:
    """Decorate a method with a target: a number without a name, and an unknown name, are refused with a line to copy.

    Python would only say how many positional arguments the method takes.
    """
    parameters = list(signature(method).parameters.values())[1:]
    verb, names = method.__name__, [one.name for one in parameters]
    n_positional = sum(one.kind is Parameter.POSITIONAL_OR_KEYWORD for one in parameters)
    takes_all = any(one.kind is Parameter.VAR_KEYWORD for one in parameters)

    @wraps(method)
    def checked(self: object, *given: object, **named: object) -> object:
        unnamed = given[n_positional:]
        unknown = [name for name in named if name not in names and not takes_all]
        if not unnamed and not unknown:
            return method(self, *given, **named)
        value = unnamed[0] if unnamed else named[unknown[0]]
        kind = "share" if "share" in names else "epsilon"
        if unnamed:
            problem = f"{shown(value)} needs a name, which says what is requested"
        else:
            meant = closest(unknown[0], names)
            problem = f"has no argument {unknown[0]}=" + (f"; did you mean {meant}=?" if meant is not None else "")
            kind = meant if meant in KINDS else kind
        line = example_call(verb, kind, value, "..., " if n_positional else "")
        others = ", ".join(f"{name}=" for name in names if name in KINDS and name != kind)
        raise RequestError(f"{verb}: {problem}; write for example {line}; other names are {others}")

    return checked  # type: ignore[return-value]  # the same signature


def example_call(verb: str, kind: object = "share", value: object = None, before: str = "") -> str:
    """A call to copy, with the value if it is small enough."""
    amount = value if isinstance(value, float) and 0 < value <= LARGEST_COPIED else 0.05
    return f".{verb}({before}{kind}={amount})" + (
        f" for {100 * amount:.6g}% of what is left" if kind == "share" else ""
    )


def _label(label: object) -> Label:
    if isinstance(label, tuple):
        return tuple(constant(part, "within") for part in label)
    return constant(label, "within")
