"""Tokens are found, kept and sent to one address only, and never shown."""

from __future__ import annotations

import getpass
import stat
import traceback
from pathlib import Path

import pytest

from dpnb.errors import InvalidValueError, RequestError
from dpnb.remote import tokens
from dpnb.remote.tokens import Token, ask_for_token, find_token, offer_to_keep, origin_of, token_file

HERE, ELSEWHERE = origin_of("https://here.example"), origin_of("https://elsewhere.example")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("DPNB_TOKEN", raising=False)
    monkeypatch.delenv("DPNB_SERVICE", raising=False)
    monkeypatch.setattr(tokens, "_used_at", [])
    return tmp_path


def test_a_kept_token_is_found_for_its_origin_only() -> None:
    path = Token("abc", "prompt").keep(HERE)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    found = find_token(HERE)
    assert found is not None
    assert found.header() == "Bearer abc"
    assert find_token(ELSEWHERE) is None
    assert find_token(origin_of("https://here.example:8443")) is None


@pytest.mark.parametrize("mode", [0o644, 0o620])
def test_a_file_that_others_can_use_is_refused(mode: int) -> None:
    Token("abc", "prompt").keep(HERE).chmod(mode)
    with pytest.raises(RequestError, match="chmod 600"):
        find_token(HERE)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("abc")
    other.chmod(0o600)
    path = token_file(HERE)
    path.parent.mkdir(parents=True)
    path.symlink_to(other)
    with pytest.raises(RequestError, match="cannot be read"):
        find_token(HERE)


def test_the_token_of_the_environment_is_for_one_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attack: a notebook of somebody else's connects to their address, to receive the token."""
    monkeypatch.setenv("DPNB_TOKEN", "abc")
    monkeypatch.setenv("DPNB_SERVICE", HERE.text)
    assert find_token(ELSEWHERE) is None
    assert find_token(HERE) is not None


def test_without_an_address_it_is_for_the_first_one_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPNB_TOKEN", "abc")
    assert find_token(HERE) is not None
    assert find_token(ELSEWHERE) is None
    assert find_token(HERE) is not None


def test_a_typed_token_is_kept_if_the_user_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    def typed(prompt: str) -> str:
        assert HERE.text in prompt
        return " abc "

    monkeypatch.setattr(getpass, "getpass", typed)
    token = ask_for_token(HERE)
    for reply in ("", "n"):
        monkeypatch.setattr("builtins.input", lambda prompt, reply=reply: reply)
        offer_to_keep(token, HERE)
        assert find_token(HERE) is None
    monkeypatch.setattr("builtins.input", lambda prompt: "y")
    offer_to_keep(token, HERE)
    assert find_token(HERE) is not None


def test_a_script_is_told_how_to_give_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(RequestError, match="DPNB_TOKEN"):
        ask_for_token(HERE)


def test_a_token_of_the_environment_for_another_address_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    monkeypatch.setenv("DPNB_TOKEN", "abc")
    assert find_token(HERE) is not None
    with pytest.raises(RequestError, match=r"DPNB_TOKEN is set, but in use for https://here\.example") as used:
        ask_for_token(ELSEWHERE)
    monkeypatch.setenv("DPNB_SERVICE", HERE.text)
    with pytest.raises(RequestError, match=r"is set, but for https://here\.example, as DPNB_SERVICE says") as named:
        ask_for_token(ELSEWHERE)
    assert "abc" not in str(used.value) + str(named.value)
    monkeypatch.delenv("DPNB_TOKEN")
    with pytest.raises(RequestError, match=r"none was found\. Give token="):
        ask_for_token(ELSEWHERE)


@pytest.mark.parametrize("text", ["", "se cret", "secret\nX-Other: 1", "sécret", 5, "s" * 5000])
def test_a_text_that_cannot_be_a_token_is_refused_and_not_shown(text: object) -> None:
    with pytest.raises(InvalidValueError) as caught:
        Token(text, "token=")
    shown = "".join(traceback.format_exception(caught.value))
    assert "cret" not in shown.replace("secret;", "")


def test_it_is_not_shown_or_copied() -> None:
    token = Token("secret", "token=")
    assert "secret" not in repr(token) + str(token)
    with pytest.raises(TypeError):
        token.__reduce_ex__(4)


@pytest.mark.parametrize(
    "address",
    [
        "http://dp.example.org",
        "http://127.0.0.1.example.org",
        "http://localhost.example.org:80",
        "https://ana:secret@dp.example.org",
        "https://dp.example.org?token=secret",
        "ftp://dp.example.org",
        "unix://relative/path",
        "unix:///",
        "https://",
        "https://host:99999",
        "dp.example.org",
        None,
    ],
)
def test_other_addresses_are_refused(address: object) -> None:
    with pytest.raises(InvalidValueError) as caught:
        origin_of(address)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("https://DP.example.org:443/", "https://dp.example.org"),
        ("http://127.8.0.1:8000", "http://127.8.0.1:8000"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("http://localhost:80", "http://localhost"),
        ("unix:///run//dpnb.sock", "unix:///run/dpnb.sock"),
    ],
)
def test_the_normal_form_of_an_address(address: str, text: str) -> None:
    assert origin_of(address).text == text
