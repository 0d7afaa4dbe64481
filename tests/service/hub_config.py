"""The example's configuration of JupyterHub, with the ports and programs of a test, and a service that drives it."""

import json
import os

c = get_config()  # noqa: F821  (JupyterHub defines it)
given = json.loads(os.environ["DPNB_TEST_HUB"])
load_subconfig(given["example"])  # noqa: F821  (JupyterHub defines it)

PUBLIC = f"http://127.0.0.1:{given['ports']['proxy']}"
c.JupyterHub.bind_url = PUBLIC
c.JupyterHub.hub_port = given["ports"]["hub"]
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{given['ports']['api']}"
c.ConfigurableHTTPProxy.command = given["proxy"]
c.JupyterHub.db_url = "sqlite:///hub.sqlite"
c.JupyterHub.services = [
    {**one, "url": f"http://127.0.0.1:{given['ports']['service']}"} for one in c.JupyterHub.services
] + [{"name": "driver", "api_token": given["token"]}]
c.JupyterHub.load_roles = [
    *c.JupyterHub.load_roles,
    {
        "name": "driver",
        "services": ["driver"],
        "scopes": ["admin:users", "admin:servers", "access:servers", "tokens", "groups"],
    },
]
c.SimpleLocalProcessSpawner.home_dir_template = given["home"] + "/{username}"
c.Spawner.args = ["--allow-root", "--LanguageServerManager.autodetect=False"]  # to look for them starts npm
c.Spawner.start_timeout = c.Spawner.http_timeout = given["patience"]
c.Spawner.environment = {
    **c.Spawner.environment,
    "DPNB_SERVICE": f"{PUBLIC}/services/dpnb",
    "PYTHONPATH": os.environ["PYTHONPATH"],
    **{name: os.environ[name] for name in given["passed_on"] if name in os.environ},
}
