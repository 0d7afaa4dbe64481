"""A session, a sub-session and a part are the same verbs."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import get_type_hints

import pytest

import dpnb
from contracts.interactive import opened
from dpnb.errors import RequestError
from dpnb.interactive import launch_verbs
from dpnb.query.query import PreviewTarget, PreviewTargets
from dpnb.session import BaseSession
from dpnb.session.session import SessionOptions


def inside(path: Path) -> list[BaseSession]:
    session = opened(path)
    return [session, session.delegate(name="half", share="0.5"), session.partition("site")["a"]]


@pytest.mark.parametrize("name", ["budget", "name", "version", "public_size", "notice", "id", "ledger"])
def test_what_a_session_is_cannot_be_assigned(name: str, tmp_path: Path) -> None:
    for one in inside(tmp_path):
        before = getattr(one, name)
        with pytest.raises(AttributeError):
            setattr(one, name, "other")
        assert getattr(one, name) == before


def test_a_session_whose_arguments_were_refused_can_be_shown() -> None:
    refused = dpnb.Session.__new__(dpnb.Session)  # as a debugger finds it in the traceback
    assert repr(refused) == "<Session, not opened>"
    assert refused._repr_html_() is None


def test_every_session_stands_for_itself(tmp_path: Path) -> None:
    session, sub, part = inside(tmp_path)
    assert [one.id for one in (session, sub, part)] == [one.id for one in inside(tmp_path)]
    assert len({one.id for one in (session, sub, part)}) == 3
    assert sub.guarantee.endswith(f"paid for by {session.name}")
    assert part.guarantee.startswith(f"a part of {session.name}, which pays for the largest part")


@pytest.mark.parametrize(
    ("verb", "options"),
    [("delegate", launch_verbs.SubSessionOptions), ("above_threshold", launch_verbs.ThresholdOptions)],
)
def test_options_of_the_overloads_are_the_arguments_of_the_verb(verb: str, options: type) -> None:
    arguments = inspect.signature(getattr(BaseSession, verb)).parameters.values()
    named = {one.name for one in arguments if one.kind is one.KEYWORD_ONLY}
    assert named - {"dry_run"} == set(get_type_hints(options))


def test_options_of_rehearse_and_preview_are_the_arguments_of_what_they_stand_for() -> None:
    assert set(get_type_hints(SessionOptions)) == {*inspect.signature(dpnb.Session).parameters} - {"table"}
    release = {*inspect.signature(dpnb.Query.release).parameters} - {"self"}
    assert set(get_type_hints(PreviewTarget)) == set(get_type_hints(PreviewTargets)) == release
    assert {*inspect.signature(dpnb.Query.preview).parameters} - {"self"} == release


def test_a_wrong_argument_names_the_method_that_was_called(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"Session\.rehearse\(\) got an unexpected keyword argument 'nam'"):
        dpnb.Session.rehearse(nam="a", budget=dpnb.Budget.gdp(1), schema={"x": dpnb.Bounded(0, 1)})  # type: ignore[call-arg]
    with pytest.raises(RequestError, match=r"preview: has no argument wihtin=; did you mean within=\?"):
        opened(tmp_path).frame.count().preview(wihtin=3)  # type: ignore[call-overload]
