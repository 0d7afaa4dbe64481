"""Access tokens: shown once, stored as hashes, refused when revoked, expired or not the curator's."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dpnb.__main__ import main
from dpnb.errors import InvalidValueError
from dpnb.ledger import Ledger
from dpnb.service.access import tokens
from dpnb.service.access.clock import Clock
from dpnb.service.access.tokens import (
    Identity,
    TokenStore,
    extend_tokens,
    new_token,
    read_tokens,
    revoke_tokens,
    rotate_token,
)
from forked import ran
from service.served import Served, open_people, run_served

ANA = Identity("ana", "analyst")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tokens.json"


def test_only_the_hash_is_stored_in_a_file_of_the_curator(file: Path) -> None:
    token = new_token(file, "ana")
    assert token not in file.read_text("utf-8")
    assert token.removeprefix("dpnb_") not in file.read_text("utf-8")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert TokenStore(file).identity(token) == ANA
    (stored,) = read_tokens(file)
    for wrong in ("", token[:-1], token + "a", stored.hash, "dpnb_", token * 1000, "\ud800"):
        assert TokenStore(file).identity(wrong) is None


def test_a_running_service_refuses_a_token_as_soon_as_it_is_revoked(file: Path) -> None:
    store = TokenStore(file)
    token = new_token(file, "ana")
    for _ in range(20):  # each change is noticed, however quickly it follows another
        assert store.identity(token) == ANA
        assert revoke_tokens(file, "ana") == 1
        assert store.identity(token) is None
        old, token = token, new_token(file, "ana")
        assert store.identity(old) is None
    file.unlink()
    assert store.identity(token) is None


def test_an_expired_token_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = new_token(file, "ana", "30d")
    store = TokenStore(file)
    assert store.identity(token) == ANA
    later = datetime.now(UTC) + timedelta(days=31)
    monkeypatch.setattr(tokens, "now", lambda: later)
    assert store.identity(token) is None


@pytest.mark.parametrize("expires", ["", "30", "0d", "d", "2001-01-01", "30 days", "99999w0"])
def test_an_expiry_is_a_period_or_a_date_in_the_future(file: Path, expires: str) -> None:
    with pytest.raises(InvalidValueError, match="expires: must be"):
        new_token(file, "ana", expires)
    assert not file.exists()


def test_tokens_of_several_analysts_are_valid_at_once(file: Path) -> None:
    first, second, other = (new_token(file, name) for name in ("ana", "ana", "ben"))  # ana has two machines
    assert revoke_tokens(file, "ana") == 2
    assert [TokenStore(file).identity(token) for token in (first, second, other)] == [
        None,
        None,
        Identity("ben", "analyst"),
    ]


@pytest.mark.parametrize("name", ["", "a b", "a\n", "-a", "a" * 201, "\u202eana"])
def test_names_are_plain(file: Path, name: str) -> None:
    with pytest.raises(InvalidValueError, match="name: must be letters"):
        new_token(file, name)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"tokens": [{"name": "ana"}]}', '{"tokens": [], "all": true}'])
def test_no_token_is_valid_if_the_file_cannot_be_read(file: Path, content: str) -> None:
    token = new_token(file, "ana")
    store = TokenStore(file)
    assert store.identity(token) == ANA
    file.write_text(content, "utf-8")
    assert store.identity(token) is None
    assert "must be a file of `python -m dpnb token`" in store.fault


def test_no_token_is_valid_if_others_can_change_the_file(file: Path) -> None:
    token = new_token(file, "ana")
    store = TokenStore(file)
    file.chmod(0o666)
    assert store.identity(token) is None
    assert "only the curator can change" in store.fault
    file.chmod(0o600)
    assert store.identity(token) == ANA


def test_the_list_shows_the_state_of_each_token_and_no_hash(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "people.toml").touch()
    (tmp_path / "people.csv").touch()
    settings = tmp_path / "curator.toml"
    settings.write_text('[tables.people]\ndeclaration = "people.toml"\ndata = "people.csv"\n', "utf-8")
    option = ["--settings", str(settings)]
    assert main(["token", "list", *option]) == 0
    assert capsys.readouterr().out.startswith("no tokens; make one")
    assert main(["token", "new", "ben", *option]) == 0
    assert main(["token", "revoke", "ben", *option]) == 0
    assert main(["token", "new", "ana", "--expires", "1h", *option]) == 0
    assert "valid tokens" not in capsys.readouterr().err
    assert main(["token", "new", "ana", *option]) == 0
    assert "ana has 2 valid tokens now; python -m dpnb token revoke ana takes all back" in capsys.readouterr().err
    monkeypatch.setattr("dpnb.__main__.now", lambda: datetime.now(UTC) + timedelta(hours=2))
    capsys.readouterr()
    assert main(["token", "list", *option]) == 0
    shown = capsys.readouterr().out
    states = [line.split(" 2")[0].split("; ")[0] for line in shown.splitlines()]
    assert states == ["ben, analyst: revoked", "ana, analyst: expired", "ana, analyst: valid until it is revoked"]
    assert not any(one.hash in shown for one in read_tokens(tmp_path / "tokens.json"))


def test_a_token_that_is_rotated_after_it_was_extended_lives_no_longer_than_was_decided_then(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_token(file, "eve", role="curator", expires="30d")
    for days, expires in ((20, "30d"), (40, "9999-12-31")):
        later = datetime.now(UTC) + timedelta(days=days)
        monkeypatch.setattr(tokens, "now", lambda later=later: later)
        extend_tokens(file, "eve", expires)
        monkeypatch.setattr(tokens, "now", lambda later=later: later + timedelta(days=5))
        rotate_token(file, "eve")
        *_, last = read_tokens(file)
        assert last.expires is not None
        assert last.expires[:10] == (f"{later + timedelta(days=35):%Y-%m-%d}" if expires == "30d" else expires)


def test_a_rotated_token_has_the_same_role_and_lasts_as_long(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, other = new_token(file, "eve", role="curator", expires="30d"), new_token(file, "ana")
    later = tokens.now() + timedelta(days=20)
    monkeypatch.setattr(tokens, "now", lambda: later)
    new = rotate_token(file, "eve")
    store = TokenStore(file)
    assert (store.identity(old), store.identity(new)) == (None, Identity("eve", "curator"))
    assert store.identity(other) == ANA
    stored = [one for one in read_tokens(file) if one.is_valid(later) and one.name == "eve"]
    assert [one.expires for one in stored] == [(later + timedelta(days=30)).isoformat(timespec="seconds")]
    assert store.identity(rotate_token(file, "eve")) == Identity("eve", "curator")
    assert store.identity(new) is None
    with pytest.raises(InvalidValueError, match="valid token"):
        rotate_token(file, "nobody")
    assert [(one.name, one.role) for one in store.holders()] == [("ana", "analyst"), ("eve", "curator")]


def test_a_clock_that_is_set_back_does_not_revive_a_token(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = new_token(file, "ana", "30d")
    start = tokens.now()

    def at(days: float) -> None:
        monkeypatch.setattr(tokens, "now", lambda: start + timedelta(days=days))

    kept = file.parent / "clock"
    store = TokenStore(file, Clock(lambda: tokens.now(), kept))
    at(29)
    assert store.identity(token) == ANA
    at(31)
    assert store.identity(token) is None
    at(1)
    assert store.identity(token) is None
    assert store.holders() == ()
    assert store.role_of("ana") is None
    assert TokenStore(file).identity(token) == ANA  # the control: a clock that knows of no later time
    assert TokenStore(file, Clock(lambda: tokens.now(), kept)).identity(token) is None  # after a restart
    kept.write_bytes(b"\xff damaged")
    store = TokenStore(file, Clock(lambda: tokens.now(), kept))
    assert store.identity(token) == ANA
    store.clock.reach((start + timedelta(days=40)).isoformat())  # as the last row of a ledger says
    assert store.identity(token) is None


def test_a_clock_proceeds_while_that_of_the_machine_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = [0.0]
    monkeypatch.setattr("dpnb.service.access.clock.monotonic", lambda: ticks[0])
    wall = [datetime(2026, 11, 24, tzinfo=UTC)]
    clock = Clock(lambda: wall[0])
    first = clock.now()
    wall[0] -= timedelta(days=2)
    ticks[0] += 60
    assert clock.now() - first == timedelta(seconds=60)


def test_a_clock_counts_the_time_once_when_a_ledger_is_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = [0.0]
    monkeypatch.setattr("dpnb.service.access.clock.monotonic", lambda: ticks[0])
    start = datetime(2026, 11, 24, tzinfo=UTC)
    clock = Clock(lambda: start + timedelta(seconds=ticks[0]))
    clock.now()
    ticks[0] += 36_000
    clock.reach((start + timedelta(seconds=36_001)).isoformat())
    assert clock.now() - start == timedelta(seconds=36_001)


def test_a_token_that_expired_before_the_last_row_of_a_ledger_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_token(tmp_path / "tokens.json", "eve", "30d")
    session = open_people(tmp_path / "people.dpnb")
    now = "2999-01-01T00:00:00.000Z"
    for is_late in (False, True):
        if is_late:
            with monkeypatch.context() as patch:
                patch.setattr(Ledger, "time", now)
                session.frame.count().release(mu=0.1)

        async def scenario(served: Served, is_late: bool = is_late) -> None:
            assert (served.service.tokens.role_of("eve") is None) == is_late

        run_served(tmp_path, scenario, session)
        session = open_people(tmp_path / "people.dpnb")
    session.ledger.close()


# --- files that root makes ------------------------------------------------------------------------------------------

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of other users")


@pytest.fixture
def of_nobody() -> Iterator[Path]:
    """A folder of another user, in which root makes the first token."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o711)
    home = folder / "curator"
    home.mkdir(mode=0o700)
    shutil.chown(home, "nobody", pwd.getpwnam("nobody").pw_gid)
    yield home
    shutil.rmtree(folder)


def as_nobody(code: str, path: Path) -> str:
    """What a program prints that runs as another user; its modules are loaded before, which only root may read."""
    program = (
        "import os, pwd, sys; from pathlib import Path; from dpnb.service.access.tokens import *; "
        "from dpnb.service.access import tokens; from dpnb.errors import *; path = Path(sys.argv[1]); "
        f"os.setgroups([]); os.setuid(pwd.getpwnam('nobody').pw_uid)\n{code}"
    )
    exit_code, printed = ran(path.parent, program, str(path))
    assert exit_code == 0, path.with_name("errors").read_text("utf-8")
    return printed.strip()


@as_root
def test_what_root_makes_belongs_to_the_owner_of_the_folder(of_nobody: Path) -> None:
    file = of_nobody / "tokens" / "tokens.json"
    new_token(file, "ana")
    for made in (file.parent, file, Path(f"{file}.lock")):
        assert made.owner() == "nobody", made
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    code = "print(*(one.name for one in read_tokens(path))); new_token(path, 'bob')"
    assert as_nobody(code, file) == "ana"
    new_token(file, "cleo")  # root again, in the files of another user
    assert [one.name for one in read_tokens(file)] == ["ana", "bob", "cleo"]
    assert file.owner() == "nobody"


@as_root
@pytest.mark.parametrize("which", ["", ".lock"])
def test_a_file_of_root_is_refused_with_its_owner_and_the_command(of_nobody: Path, which: str) -> None:
    file = of_nobody / "tokens.json"
    new_token(file, "ana")
    os.chown(f"{file}{which}", 0, 0)
    code = "try:\n new_token(path, 'bob')\nexcept InvalidValueError as error:\n print(error)"
    message = as_nobody(code, file)
    assert f"chown nobody: '{file}' '{file}.lock'" in message
    assert "sudo -u nobody" in message
    assert "chmod" not in message
    assert f"'{file}{which}' must be a file that nobody can open; it belongs to root" in message
    new_token(file, "cleo")  # root mends both files
    assert as_nobody("print(len(read_tokens(path))); new_token(path, 'bob')", file) == "2"


@as_root
def test_root_gives_away_no_file_that_was_linked_there(of_nobody: Path) -> None:
    file, secret = of_nobody / "tokens.json", of_nobody.parent / "secret"
    secret.write_text("of root", "utf-8")
    lock = Path(f"{file}.lock")
    lock.symlink_to(secret)
    with pytest.raises(InvalidValueError, match="symbolic links"):
        new_token(file, "ana")
    lock.unlink()
    os.link(secret, lock)
    new_token(file, "ana")
    assert secret.stat().st_uid == 0


@as_root
def test_a_file_of_another_user_is_refused_with_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    new_token(file, "ana")
    shutil.chown(file, "nobody")
    with pytest.raises(InvalidValueError, match="belongs to nobody; run the command as nobody, or chown root: "):
        read_tokens(file)
