"""The case of texts is the same in every version of Python, and changes letter by letter."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnb._plan.expressions.letters import END, LETTERS, Case, changed_case
from texts import characters

CASES: list[Case] = ["lower", "upper"]


@pytest.mark.parametrize(
    ("case", "digest"),
    [("lower", "941241f060f5d735"), ("upper", "8d2bb6cb7785a516")],
)
def test_the_letters_that_change_never_change(case: Case, digest: str) -> None:
    """Answers in a ledger were computed with them, and engines compute with them."""
    text = "".join(old + new for old, new in LETTERS[case].items())
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == digest


@pytest.mark.parametrize("case", CASES)
def test_ascii_texts_change_as_in_python(case: Case) -> None:
    text = "".join(map(chr, range(128)))
    assert changed_case(text, case) == getattr(text, case)()


@pytest.mark.parametrize(
    ("text", "lower", "upper"),
    [
        ("ZOË Ñandú", "zoë ñandú", "ZOË ÑANDÚ"),
        ("Привет", "привет", "ПРИВЕТ"),
        ("ΣΑΣ", "σασ", "ΣΑΣ"),  # no final sigma
        ("Straße", "straße", "STRAßE"),
        ("İ", "İ", "İ"),
        ("ﬁ ꙋ", "ﬁ ꙋ", "ﬁ ꙋ"),
    ],
)
def test_only_letters_with_one_other_form_change(text: str, lower: str, upper: str) -> None:
    assert (changed_case(text, "lower"), changed_case(text, "upper")) == (lower, upper)


@given(st.text(characters), st.sampled_from(CASES))
def test_a_change_of_case_keeps_the_length_and_can_be_repeated(text: str, case: Case) -> None:
    changed = changed_case(text, case)
    assert len(changed) == len(text)
    assert changed_case(changed, case) == changed
    assert all(old == new for old, new in zip(text, changed, strict=True) if ord(old) >= END)
