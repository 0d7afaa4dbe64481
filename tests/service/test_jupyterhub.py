"""Two analysts, a curator and another user of a real JupyterHub, with its proxy, ask the service behind it.

Each has a notebook server of the example's configuration, and a kernel in it that calls `dpnb.connect` with nothing but
the Hub's own identity.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dpnb.service.access.tokens import new_token
from service.hub_running import Kernel, RunningHub, running_hub
from ui.console import keep_picture
from waiting import LIMIT_MS, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.waits]

ACCESS, CURATE = "access:services!service=dpnb", "custom:dpnb:curate"
USERS = ("ana", "bob", "cora", "eve")

ERROR = """
try:
    {0}
except dpnb.errors.DpnbError as error:
    print(type(error).__name__, str(error))
else:
    print("no error")
"""


@dataclass
class Hub:
    """A running JupyterHub, and a kernel of each user."""

    running: RunningHub
    kernels: dict[str, Kernel]

    def refusal(self, user: str, code: str) -> str:
        """The type and text of the error that a line of code raises."""
        return self.kernels[user].run(ERROR.format(code))


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    folder: Path = tmp_path_factory.mktemp("hub")
    with ExitStack() as stack:
        running = stack.enter_context(running_hub(folder))
        running.start_notebooks(USERS)
        kernels = {user: stack.enter_context(running.kernel(user)) for user in USERS}
        for kernel in kernels.values():
            kernel.run("import os, dpnb")
        yield Hub(running, kernels)


def spent(kernel: Kernel, session: str = "session") -> str:
    return kernel.run(f"print({session}.spent)")


def test_a_pooled_table_is_one_gauge_for_the_users_of_the_hub(hub: Hub) -> None:
    ana, bob = hub.kernels["ana"], hub.kernels["bob"]
    for kernel in (ana, bob):
        kernel.run('session = dpnb.connect(table="pooled")')
    for asks, sees, mu in ((ana, bob, "1/10"), (bob, ana, "1/5")):
        before = spent(sees)
        asks.run(f'answer = session.frame["age"].mean().release(mu="{mu}")')
        wait_until(lambda sees=sees, before=before: spent(sees) != before, "the other's charge in the gauge")
        assert spent(sees) == spent(asks)


def test_nothing_of_one_analyst_reaches_the_other_in_reserved_mode(hub: Hub) -> None:
    ana, bob = hub.kernels["ana"], hub.kernels["bob"]
    token = hub.running.token("bob", ACCESS)

    def received(table: str) -> list[bytes]:
        return [hub.running.fetch(f"tables/{table}{path}", token) for path in ("", "/rows?after=0&pending=")]

    for kernel in (ana, bob):
        kernel.run('session, pooled = dpnb.connect(table="reserved"), dpnb.connect(table="pooled")')
    bob.run('session.frame["age"].mean().release(mu="1/20")')
    wait_until(lambda: bob.run("print(session._core.connection.text)") == "up to date", "the stream of events")
    shown, before, shared = bob.run("print(session)"), received("reserved"), received("pooled")
    pooled = spent(bob, "pooled")
    assert b"released" in before[1]
    ana.run('answer = session.frame["age"].mean().release(mu="1/10")')
    ana.run('pooled.frame["age"].sum().release(mu="1/10")')
    wait_until(lambda: spent(bob, "pooled") != pooled, "the control's event, which is later than the other's would be")
    assert received("pooled") != shared  # control: a table whose budget is shared
    assert received("reserved") == before
    assert bob.run("print(session)") == shown
    own = hub.running.fetch("tables/reserved/rows?after=0&pending=", hub.running.token("ana", ACCESS))
    (answer,) = (row["values"]["result"] for row in json.loads(own)["rows"])
    noisy = json.loads(answer)["values"]
    assert len("".join(noisy)) > 8  # what is not found is not short
    for number in noisy:
        assert number.encode() in own  # control: what is looked for is what ana receives
        assert number.encode() not in b"".join(received("reserved"))


def test_a_user_without_the_scope_is_refused_by_type(hub: Hub) -> None:
    refused = hub.refusal("eve", 'dpnb.connect(table="pooled")')
    assert refused.startswith("AccessDenied JupyterHub: gives this user no token")
    assert ACCESS in refused
    own = hub.refusal("eve", 'dpnb.connect(table="pooled", token=os.environ["JUPYTERHUB_API_TOKEN"])')
    assert own.startswith("AccessDenied token: must have the scope")
    assert hub.refusal("ana", 'dpnb.connect(table="pooled")') == "no error"  # control


def test_the_token_that_is_sent_has_the_one_scope_and_expires(hub: Hub) -> None:
    ana = hub.kernels["ana"]
    ana.run('session = dpnb.connect(table="pooled")')
    ana.run("from dpnb.remote.hub import hub_token; from dpnb.remote.tokens import origin_of")
    ana.run('sent = hub_token(origin_of(os.environ["DPNB_SERVICE"])).header().partition(" ")[2]')
    token = ana.value("sent")
    assert token != ana.value('os.environ["JUPYTERHUB_API_TOKEN"]')
    said = hub.running.client.get(
        f"{hub.running.url}/hub/api/user", headers={"Authorization": f"Bearer {token}"}
    ).json()
    assert [one for one in said["scopes"] if not one.startswith("read:users:")] == [ACCESS]
    listed = hub.running.request("GET", "users/ana/tokens")["api_tokens"]
    made = [one for one in listed if one["note"] == "dpnb.connect"]
    assert made
    assert all(one["expires_at"] for one in made)


def test_a_curator_of_the_hub_sees_who_asked_and_freezes_a_table(hub: Hub) -> None:
    ana, cora = hub.kernels["ana"], hub.kernels["cora"]
    ana.run('session = dpnb.connect(table="pooled")')
    ana.run('session.frame.count().release(mu="1/10")')
    for kernel in (ana, cora):
        kernel.run("from dpnb.remote.deciding import change, history; from dpnb.wire.messages import Freeze, Unfreeze")
    address = 'os.environ["DPNB_SERVICE"]'
    assert "ana: " in cora.run(f'print(history({address}, "pooled"))')
    assert hub.refusal("ana", f'history({address}, "pooled")').startswith("AccessDenied JupyterHub: gives this user no")
    cora.run(f'change({address}, "pooled", Freeze("a look at the log"))')
    assert "frozen" in hub.refusal("ana", 'session.frame.count().release(mu="1/7")')
    cora.run(f'change({address}, "pooled", Unfreeze())')
    assert hub.refusal("ana", 'session.frame.count().release(mu="1/7")') == "no error"


@pytest.mark.ui
def test_a_curator_approves_in_the_browser_what_an_analyst_of_the_hub_requests(hub: Hub, browser: Any) -> None:
    ana, token = hub.kernels["ana"], new_token(hub.running.folder / "tokens.json", "carl", role="curator")
    ana.run('session = dpnb.connect(table="capped"); query = session.frame.count()')
    assert hub.refusal("ana", 'query.release(mu="1/5")').startswith("BudgetExceeded")
    ana.run('asked = session.request_budget(query, mu="1/5", why="the report of the ward")')
    assert ana.run("print(asked.status)") == "pending"
    page = browser.new_page()
    try:
        page.set_default_timeout(LIMIT_MS)
        page.goto(f"{hub.running.cockpit_url}/")
        page.get_by_label("Access token").fill(token)
        page.get_by_role("button", name="Log in").click()
        page.get_by_role("link", name="capped").click()
        request = page.get_by_role("article").filter(has_text="the report of the ward")
        request.get_by_role("button", name="Approve…").click()
        dialog = page.get_by_role("dialog", name="Approve the request of ana")
        keep_picture(page, "curator-of-a-hub")
        dialog.get_by_role("button", name="Approve mu").click()
        page.get_by_text("No request is pending.").wait_for()
    finally:
        page.close()
    wait_until(lambda: ana.run("print(asked.status)") == "approved", "the decision in the session, without a call")
    assert hub.refusal("ana", 'query.release(mu="1/5")') == "no error"


def test_a_user_who_leaves_the_group_is_refused_before_the_next_charge(hub: Hub) -> None:
    bob = hub.kernels["bob"]
    bob.run('session = dpnb.connect(table="pooled")')
    assert hub.refusal("bob", 'session.frame.count().release(mu="1/30")') == "no error"
    hub.running.request("DELETE", "groups/analysts/users", {"users": ["bob"]})
    try:
        before = hub.kernels["ana"].run('print(dpnb.connect(table="pooled").spent)')
        refused = hub.refusal("bob", 'session.frame.count().release(mu="1/20")')
        assert refused.startswith("AccessDenied ")
        assert hub.kernels["ana"].run('print(dpnb.connect(table="pooled").spent)') == before
    finally:
        hub.running.request("POST", "groups/analysts/users", {"users": ["bob"]})
