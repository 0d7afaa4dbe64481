"""What a failed reply means, as an error."""

from __future__ import annotations

import inspect

import msgspec

from dpnb import errors
from dpnb.errors import AccessDenied, DpnbError, ServiceError
from dpnb.wire import VERSION
from dpnb.wire.replies import AnyReply, Refused

RETRIED = (502, 503, 504)
"""Replies of a proxy or a service that is starting; the request is sent again."""

TOO_MANY_REQUESTS = 429
"""A limit of the service; the request was not executed, and is sent again."""

_KINDS: dict[str, type[DpnbError]] = {
    name: kind
    for name, kind in vars(errors).items()
    if inspect.isclass(kind) and issubclass(kind, DpnbError) and not issubclass(kind, Warning)
}
_REPLIES: msgspec.json.Decoder[AnyReply] = msgspec.json.Decoder(AnyReply)

MAX_SHOWN = 4000
"""Characters of a message that are shown."""


def refusal(reply: Refused) -> DpnbError:
    """The refusal of the service, as a local session would raise it."""
    return _KINDS.get(reply.error, ServiceError)(refusal_text(reply))


def refusal_text(reply: Refused) -> str:
    """The message of a refusal, as it may be shown."""
    return printable(reply.message[:MAX_SHOWN])


def printable(text: str) -> str:
    r"""A text of the service without characters that control a terminal.

    >>> printable("cost\x1b[2J")
    'cost?[2J'
    """
    return "".join(one if one.isprintable() or one == "\n" else "?" for one in text)


def refused_in(body: bytes) -> Refused | None:
    """The refusal in a body; None if it is something else."""
    try:
        reply = _REPLIES.decode(body)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return reply if isinstance(reply, Refused) else None


def failure(where: str, status: int, body: bytes) -> DpnbError:
    """The error of a reply that is neither an answer nor worth a retry; `where` is the service, for its message.

    The content of the reply is shown only if it is a refusal.
    """
    if status == 401:
        return AccessDenied(
            f"{where}: refused the access token; nothing was charged; ask the curator for a new token, and give it as "
            "token= or in DPNB_TOKEN"
        )
    refused = refused_in(body)
    if refused is not None:
        return refusal(refused)
    if status == 403:
        return AccessDenied(f"{where}: the access token does not allow this; nothing was charged; ask the curator")
    if 300 <= status < 400:
        return ServiceError(
            f"{where}: replied with a redirection, which is not followed, since the token is sent to one address only; "
            "connect to the address of the service itself"
        )
    if status == 404:
        return other_version(where)
    return ServiceError(
        f"{where}: failed with status {status}; if the request was charged, repeating it with the same arguments uses "
        "the same charge; ask the curator to look at the log of the service"
    )


def other_version(where: str) -> ServiceError:
    """The error of a service that does not have the addresses of this version."""
    return ServiceError(
        f"{where}: is no dpnb service, or one with another version of the messages; this dpnb uses version {VERSION}; "
        "check the address, and install the version of dpnb that the service has"
    )


def unreadable(where: str) -> ServiceError:
    """The error of a reply that does not have the form of this version."""
    return ServiceError(
        f"{where}: sent a reply that this version of dpnb cannot read; if the request was charged, repeating it with "
        "the same arguments uses the same charge; install the version of dpnb that the service has"
    )
