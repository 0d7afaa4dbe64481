"""Stands in for a session in a notebook: a budget that is spent by hand.  Copied beside the test notebooks."""

from __future__ import annotations

import pathlib
import uuid

import msgspec
from IPython.display import display

import waiting  # of tests/, copied beside this file
from dpnb._browser.snapshot import SessionSnapshot
from dpnb.notebook import panel, widgets


def filters(left: float) -> list[dict[str, object]]:
    """One that would have refused, and the one that decides; the page puts the latter first."""
    refused = "would have refused query 1"
    words = f"{left:.1%} left; {4 * left:.0f} more like the last"
    basic = {"id": "basic", "label": "basic", "enforced": False, "value": 0.0, "text": refused}
    gdp = {"id": "gdp", "label": "GDP", "enforced": True, "value": left, "text": words}
    return [
        {**basic, "description": f"A made-up sum. It {refused}."},
        {**gdp, "description": "Another made-up sum. It enforces this budget."},
    ]


def odometers(left: float, name: str) -> list[dict[str, object]]:
    """One of each reading."""
    used = f"{1 - left:.3f}"
    gdp = {"id": "gdp-accumulator", "label": "GDP accumulator", "kind": "accumulator", "text": f"mu {used}"}
    mixture = {"id": "mixture", "label": "Mixture", "kind": "time-uniform", "text": f"loss so far at most {used}"}
    return [
        {**mixture, "description": f"With confidence 99.9999%, the privacy loss of {name} so far is at most {used}."},
        {**gdp, "description": f"Everything so far is inside every budget that is at least {used}."},
    ]


def timeline(spent: list[float]) -> dict[str, object]:
    """What was spent after each release."""
    points = [
        {"id": place, "spent": share, "bounds": [share], "text": f"request {place}"}
        for place, share in enumerate(spent)
    ]
    return {
        "budget": {"label": "Budget spent", "text": ""},
        "odometers": {"label": "Loss so far at most", "end": 1.0, "text": "up to 1 when the budget is spent"},
        "curves": [{"id": "mixture", "label": "Mixture"}],
        "points": points[-100:],
    }


def hold(name: str = "go-on") -> None:
    """Keep a cell running until the test says that it may go on."""
    waiting.wait_until(pathlib.Path(name).exists, f"the test says {name}")


class Budget:
    """What is left, shown by the panel and by gauges below the cell."""

    def __init__(self, name: str = "fake", notice: str | None = None) -> None:
        self.name = name
        self.id = uuid.uuid4().hex
        self.notice = notice
        self.left = 1.0
        self.releases: list[dict[str, object]] = []
        self.spent: list[float] = [0.0]
        panel.install(lambda: [self.session()])

    def session(self) -> SessionSnapshot:
        """The session that is shown."""
        text = f"{self.left:.1%} left"
        scale = {"end": "1 when the budget is spent", "note": "A made-up bound at every moment."}
        description = f"{text} of a made-up budget."
        gauge = {"value": self.left, "text": text, "kind": "remaining", "end": None, "note": None}
        used = {"value": 1 - self.left, "text": f"loss so far at most {1 - self.left:.2f}", "kind": "loss", **scale}
        fields = {
            "id": self.id,
            "name": self.name,
            "privacy_unit": "one row",
            "engine": "memory",
            "notice": self.notice,
            "notice_explanation": self.notice and "rehearsal",
            "connection": None,
            "guarantee": "(1, 1e-06)-DP, enforced as 0.2117-GDP, for one row",
            "promise": "what all answers together reveal about one unit is limited, whatever is asked",
            "headlines": [{"id": "remaining", "text": text}],
            "filter": "gdp",
            "gauges": [
                {"id": "headroom", "label": "Budget left", "description": description, **gauge},
                {"id": "mixture", "label": "Odometer", "description": "With confidence 99.9999% ...", **used},
            ],
            "filters": filters(self.left),
            "odometers": odometers(self.left, self.name),
            "spent": f"{1 - self.left:.1%} spent",
            "spent_loss": f"mu {1 - self.left:.3f} of 1",
            "ledger": f"{self.name}.dpnb",
            "next_steps": [],
            "timeline": timeline(self.spent),
            "n_requests": len(self.releases),
            "log": self.releases[:50],
            "cell_costs": [],
            "refusals": [],
            "budget_requests": [],
            "mechanisms": [],
            "odometers_paused": None,
            "is_compared": True,
            "participation": None,
        }
        return msgspec.convert(fields, SessionSnapshot)

    def show(self) -> None:
        """Display live gauges below the cell."""
        display(widgets.mimebundle(self.session(), text=self.name, html=self.name), raw=True)

    def set(self, left: float, question: str = "count") -> None:
        """Release something, after which this share is left."""
        self.left = left
        self.spent.append(1 - left)
        cost = {"cost": f"mu {1 - left:.3f}", "mu": 1 - left, "cost_fraction": f"{1 - left:.1%}", "error": "± 1"}
        answer = {"estimate": "7 (6 to 8)", "value": 7.0, "low": 6.0, "high": 8.0}
        where = {"time": "2026-11-21T01:20:00Z", "status": "released", "cell_id": None}
        self.releases = [
            {"id": len(self.releases) + 1, "query": question, "title": question, **cost, **answer, **where},
            *self.releases,
        ]
        panel.publish()
