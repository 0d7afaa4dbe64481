"""Access tokens: shown once, stored as hashes, and refused when they have expired or were revoked.

A token is 256 random bits, so a plain hash of it cannot be searched.  The service reads the file again when it has
changed, so a token is refused as soon as it is revoked.  If the file cannot be read, no token is valid.

A command that root runs gives the file to the owner of its folder, who usually runs the service.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
import pwd
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Literal, get_args

import msgspec

from dpnb.copying import NotCopyable
from dpnb.errors import InvalidValueError
from dpnb.service.access.clock import Clock
from dpnb.service.configuration.parts import NAME
from dpnb.wire.limits import moment_from_text


def user_name(uid: int) -> str:
    """The name of a user; the number if it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def is_from(status: os.stat_result, folder: Path) -> bool:
    """Whether a file is of this user or root; for root also of the folder's owner, who could replace it anyway."""
    uid = os.geteuid()
    return status.st_uid in (uid, 0) or (uid == 0 and status.st_uid == os.stat(folder).st_uid)


def give_to_owner(file: int, folder: Path) -> None:
    """Give a file that root has open to the folder's owner; any other user's files are their own.

    The file must have been opened without following links.
    """
    if os.geteuid() != 0:
        return
    of, status = os.stat(folder), os.fstat(file)
    # Never a file with a second name: the folder's owner could have linked one of root's here.
    if status.st_uid == 0 != of.st_uid and stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
        os.fchown(file, of.st_uid, of.st_gid)


def make_folder(folder: Path) -> None:
    """Create a folder and those above it, all of the owner of the one that exists."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(exist_ok=True)
        of = os.stat(one.parent)
        if os.geteuid() == 0 != of.st_uid:
            os.chown(one, of.st_uid, of.st_gid, follow_symlinks=False)


# --- access tokens ----------------------------------------------------------------------------------------------------


PREFIX = "dpnb_"
"""Begins every token, so that a search for leaked secrets finds it."""

BYTES = 32
LONGEST_TOKEN = 200
END = datetime.max.replace(tzinfo=UTC)
"""The last expiry that can be written."""

Role = Literal["owner", "curator", "auditor", "monitor", "analyst"]
AUDITORS: tuple[Role, ...] = ("auditor", "curator", "owner")
CURATORS: tuple[Role, ...] = ("curator", "owner")
MONITORS: tuple[Role, ...] = ("monitor", "curator", "owner")
"""Who may read about a table, who may act, and who may read the figures of the process."""
ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True)
class Identity:
    """Who sends a request.

    An ``analyst`` asks queries; an ``auditor`` reads who asked what, and its cost, without answers; a ``curator`` may
    also freeze tables; the ``owner`` too, and is the one who has the settings.  A ``monitor``, a program, reads figures
    of the process and nothing else.
    """

    name: str
    role: Role


class StoredToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A token, as the file stores it."""

    name: str  # of the person
    hash: str  # SHA-256 of the token, in hexadecimal
    created: str  # UTC, ISO 8601, as the next two
    expires: str | None = None
    revoked: str | None = None
    role: Role = "analyst"
    extended: str | None = None  # when its expiry was set last, if not when it was made

    @property
    def life(self) -> timedelta | None:
        """For how long it was to live when that was decided last; None for no end."""
        begun = datetime.fromisoformat(self.extended or self.created)
        return None if self.expires is None else datetime.fromisoformat(self.expires) - begun

    def is_valid(self, now: datetime) -> bool:
        """Whether the token is neither revoked nor expired."""
        return self.revoked is None and (self.expires is None or now < datetime.fromisoformat(self.expires))


class TokenFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the file."""

    tokens: tuple[StoredToken, ...] = ()


def read_tokens(path: Path) -> tuple[StoredToken, ...]:
    """The tokens of a file; none if it does not exist.  A file that other users may change is refused."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            tokens = msgspec.json.decode(file.read(), type=TokenFile).tokens
        for token in tokens:
            token.is_valid(now())
    except FileNotFoundError:
        return ()
    except PermissionError:
        raise InvalidValueError(_not_readable(path, path)) from None
    except (OSError, msgspec.MsgspecError, TypeError, ValueError) as error:
        fault = error.strerror if isinstance(error, OSError) else "it is not a file of tokens"
        raise InvalidValueError(
            f"tokens: {str(path)!r} must be a file of `python -m dpnb token`; {fault}; correct it"
        ) from None
    if not is_from(status, path.parent):
        me, owner = user_name(os.geteuid()), user_name(status.st_uid)
        raise InvalidValueError(
            f"tokens: {str(path)!r} must be a file that only the curator, {me}, can change; it belongs to {owner}; run "
            f"the command as {owner}, or chown {me}: {str(path)!r}"
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise InvalidValueError(
            f"tokens: {str(path)!r} must be a file that only the curator can change; other users can; run chmod 600"
        )
    return tokens


def _not_readable(path: Path, refused: Path) -> str:
    """Why a file of tokens, or the one beside it, cannot be opened by this user, and what to do."""
    me = user_name(os.geteuid())
    try:
        belongs = f"it belongs to {user_name(refused.stat().st_uid)}"
    except OSError:
        belongs = "its folder cannot be read"
    files = f"{str(path)!r} {f'{path}.lock'!r}"
    return (
        f"tokens: {str(refused)!r} must be a file that {me} can open; {belongs}; as root, run chown {me}: {files}, and "
        f"make tokens as that user from now on, with sudo -u {me}"
    )


def new_token(path: Path, name: str, expires: str | None = None, role: Role = "analyst") -> str:
    """Make a token and return it; the file keeps its hash only.

    The ledger records `name` with every charge.  All tokens of a person have the same role.  The token expires at a
    date, or after a period such as ``12h``, ``30d`` or ``8w``; by default never.
    """
    if not NAME.fullmatch(name):
        raise InvalidValueError(
            f"name: must be letters, digits, '.', '_', '@' and '-', and begin with a letter or digit; got {name!r}; "
            "for example 'ana'"
        )
    until = expiry_of(expires)
    token = PREFIX + secrets.token_urlsafe(BYTES)
    with _changed(path) as tokens:
        _refuse_role(tokens, name, role, now())
        tokens.append(StoredToken(name, hash_of(token), _stamp(now()), until, role=role))
    return token


def revoke_tokens(path: Path, name: str) -> int:
    """Revoke all valid tokens of a person, who must have one, and return how many there were."""
    with _changed(path) as tokens:
        return len(_revoked(tokens, name, now()))


def rotate_token(path: Path, name: str) -> str:
    """Replace all valid tokens of a person by a new one with the same role, and return it.

    It expires after as long as the person's last token, from its making on.
    """
    token = PREFIX + secrets.token_urlsafe(BYTES)
    with _changed(path) as tokens:
        time = now()
        last = _revoked(tokens, name, time)[-1]
        until = None if last.life is None else _stamp(min(time, END - last.life) + last.life)
        tokens.append(StoredToken(name, hash_of(token), _stamp(time), until, role=last.role))
    return token


def extend_tokens(path: Path, name: str, expires: str | None) -> None:
    """Let all valid tokens of a person, who must have one, expire at another time; see `new_token`."""
    until = expiry_of(expires)
    with _changed(path) as tokens:
        for place in _valid(tokens, name, time := now()):
            tokens[place] = msgspec.structs.replace(tokens[place], expires=until, extended=_stamp(time))


class TokenStore(NotCopyable):
    """The tokens of a service, read again when the file has changed.

    They expire by `clock`, by default one that begins now.
    """

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self.path, self.clock = path, clock or Clock(lambda: now())
        self._read: tuple[tuple[int, ...] | None, tuple[StoredToken, ...]] = (None, ())
        self.fault = ""
        """Why the file cannot be used, for the curator's log; empty if it can."""

    def identity(self, token: str) -> Identity | None:
        """Who has a token; None if it is unknown, expired or revoked.

        Takes the same time for every token: all hashes are compared, each in constant time.
        """
        return self.identity_of_hash(hash_of(token[:LONGEST_TOKEN]))

    def identity_of_hash(self, presented: str) -> Identity | None:
        """Who has the token with a hash; None if it is unknown, expired or revoked."""
        time, found = self.clock.now(), None
        for one in self._tokens():
            if hmac.compare_digest(one.hash, presented) and one.is_valid(time):
                found = Identity(one.name, one.role)
        return found

    def role_of(self, name: str) -> Role | None:
        """The role of a person who has a valid token; None without one."""
        time = self.clock.now()
        return next((one.role for one in self._tokens() if one.name == name and one.is_valid(time)), None)

    def holders(self) -> tuple[StoredToken, ...]:
        """The last valid token of each person, by name."""
        time = self.clock.now()
        return tuple(
            sorted({one.name: one for one in self._tokens() if one.is_valid(time)}.values(), key=lambda one: one.name)
        )

    def refuse_role(self, name: str, role: Role) -> None:
        """Refuse another role than the one that a person has."""
        _refuse_role(self._tokens(), name, role, self.clock.now())

    def _tokens(self) -> tuple[StoredToken, ...]:
        try:
            status = os.stat(self.path)
            version = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size)
        except OSError:
            version = None
        if version is None or version != self._read[0]:
            try:
                tokens, self.fault = read_tokens(self.path), ""
            except InvalidValueError as error:
                tokens, self.fault = (), str(error)
            self._read = version, tokens
        return self._read[1]


def expiry_of(expires: str | None) -> str | None:
    """When a token expires that is made now; an `InvalidValueError` if that is no date or period."""
    return None if expires is None else _stamp(moment_from_text(expires, "expires", now()))


def _refuse_role(tokens: Iterable[StoredToken], name: str, role: Role, time: datetime) -> None:
    other = next((one.role for one in tokens if one.name == name and one.role != role and one.is_valid(time)), None)
    if other is not None:
        raise InvalidValueError(
            f"role: {name!r} has a valid token with the role {other!r}, and a person has one role; got {role!r}; "
            "revoke it first"
        )


def _revoked(tokens: list[StoredToken], name: str, time: datetime) -> list[StoredToken]:
    """Revoke a person's valid tokens, of which there must be at least one; returns them as they were."""
    places = _valid(tokens, name, time)
    valid = [tokens[place] for place in places]
    for place in places:
        tokens[place] = msgspec.structs.replace(tokens[place], revoked=_stamp(time))
    return valid


def _valid(tokens: list[StoredToken], name: str, time: datetime) -> list[int]:
    """The places of a person's valid tokens, of which there must be at least one."""
    places = [place for place, one in enumerate(tokens) if one.name == name and one.is_valid(time)]
    if not places:
        raise InvalidValueError(
            f"name: must be that of an analyst with a valid token; got {name!r}; `python -m dpnb token list` lists them"
        )
    return places


@contextmanager
def _changed(path: Path) -> Iterator[list[StoredToken]]:
    """The tokens of a file, written back when the block ends; another command waits meanwhile."""
    try:
        make_folder(path.parent)
        # As root without following a link, which the folder's owner could have placed.
        file = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except PermissionError as error:
        raise InvalidValueError(_not_readable(path, Path(error.filename))) from None
    except OSError as error:
        raise InvalidValueError(
            f"tokens: '{path}.lock' must be a file of `python -m dpnb token`; {error.strerror}; remove it"
        ) from None
    with os.fdopen(file) as lock:
        give_to_owner(file, path.parent)
        fcntl.flock(lock, fcntl.LOCK_EX)
        tokens = list(read_tokens(path))
        yield tokens
        with NamedTemporaryFile(dir=path.parent, prefix=path.name, delete=False) as written:  # with mode 0600
            try:
                written.write(msgspec.json.format(msgspec.json.encode(TokenFile(tuple(tokens))), indent=1) + b"\n")
                written.flush()
                os.fsync(written.fileno())
                give_to_owner(written.fileno(), path.parent)
                os.replace(written.name, path)
            except BaseException:
                Path(written.name).unlink(missing_ok=True)
                raise


def hash_of(token: str) -> str:
    """The hash of a token, as the file stores it."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def now() -> datetime:
    """The time by the clock of the machine; tests replace this function."""
    return datetime.now(UTC)


def _stamp(time: datetime) -> str:
    return time.isoformat(timespec="seconds")
