"""Whatever work on rows raises, one constant error comes out, without anything that leads back to the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dpnb._backends.worker_thread import run_guarded
from dpnb.errors import ExecutionError, LedgerError, SchemaError

SECRET = "SECRET-Alice-HIV"


class Panic(BaseException):
    """As polars' own, which is no `Exception`."""


class Interrupt(KeyboardInterrupt):
    """Of somebody's own."""


RAISED: list[BaseException] = [
    ValueError(SECRET),
    Panic(SECRET),
    SystemExit(SECRET),
    GeneratorExit(SECRET),
    StopIteration(SECRET),
    SchemaError(SECRET),
    ExceptionGroup(SECRET, [ValueError(SECRET)]),
    BaseExceptionGroup(SECRET, [KeyboardInterrupt(SECRET), Panic(SECRET)]),
]


def only_exceptions(work: Callable[[], Any], message: str) -> Any:
    """The control: what `run_guarded` was once."""
    try:
        return work()
    except Exception:  # noqa: BLE001
        pass
    raise ExecutionError(message)


def outcome(guard: Callable[..., Any], error: BaseException, **options: Any) -> BaseException:
    def work() -> None:
        raise error

    try:
        guard(work, "constant", **options)
    except BaseException as caught:  # noqa: BLE001
        return caught
    raise AssertionError


def leads_to_rows(error: BaseException) -> bool:
    frames, at = [], error.__traceback__
    while at is not None:
        frames.append(at.tb_frame.f_code.co_name)
        at = at.tb_next
    return SECRET in str(error) or "work" in frames or (error.__cause__ or error.__context__) is not None


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_every_exception_becomes_one_constant_error(error: BaseException) -> None:
    caught = outcome(run_guarded, error)
    assert type(caught) is ExecutionError
    assert caught.args == ("constant",)
    assert not leads_to_rows(caught)


def test_a_guard_against_exceptions_alone_is_seen_through() -> None:
    assert [type(error) for error in RAISED if leads_to_rows(outcome(only_exceptions, error))] == [
        Panic,
        SystemExit,
        GeneratorExit,
        BaseExceptionGroup,
    ]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), KeyboardInterrupt(SECRET), Interrupt(SECRET)])
@pytest.mark.parametrize("said", ["", "interrupted"])
def test_an_interrupt_says_what_it_is_given_and_nothing_else(error: BaseException, said: str) -> None:
    caught = outcome(run_guarded, error, interrupted=said)
    assert type(caught) is KeyboardInterrupt
    assert caught.args == ((said,) if said else ())
    assert not leads_to_rows(caught)


def test_an_error_that_quotes_no_rows_is_told_without_its_way() -> None:
    caught = outcome(run_guarded, LedgerError("the ledger is full"), public_errors=LedgerError)
    assert type(caught) is LedgerError
    assert caught.args == ("the ledger is full",)
    assert not leads_to_rows(caught)
