"""Work of an engine in a thread of its own, and what an interrupt does to it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from dpnb.query import background
from dpnb.query.background import Background
from threads import joined


@pytest.mark.waits
def test_work_whose_thread_was_only_beginning_when_the_interrupt_came_is_never_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would have met the next request on the same connection."""
    begun: list[threading.Thread] = []

    class Beginning(threading.Thread):
        def start(self) -> None:
            begun.append(self)
            raise KeyboardInterrupt

    def beginning(run: Callable[[], object]) -> threading.Thread:
        return Beginning(target=run, daemon=True)

    done: list[str] = []
    engine = Background()
    with monkeypatch.context() as patch:
        patch.setattr(background, "_thread", beginning)
        with pytest.raises(KeyboardInterrupt):
            engine.run(lambda: done.append("what was interrupted"))
    (thread,) = begun
    engine.settle()
    engine.run(lambda: done.append("the next request"))
    threading.Thread.start(thread)
    joined(thread)
    assert done == ["the next request"]
