# A JupyterHub whose users ask a curator's service, with no other identity than the Hub's.
#
#     pip install jupyterhub jupyterlab "dpnb[lab,remote,serve]" && npm install -g configurable-http-proxy
#     python -m dpnb serve curator.toml             in one terminal: the service, see curator.toml beside this file
#     jupyterhub                                    in another one, in this folder; then open http://127.0.0.1:8000
#
# In a notebook of ana or bob, `session = dpnb.connect()` is all.  To try it on one machine, everything here runs as the
# user who starts it; the comments say what a real deployment changes.
import sys

c = get_config()  # noqa: F821  (JupyterHub defines it)

# --- the Hub and its proxy ---
c.JupyterHub.bind_url = "http://127.0.0.1:8000"  # real: https://hub.example.org, with ssl_cert and ssl_key or a proxy
c.JupyterHub.hub_port = 8081  # the Hub's API: `api_url` in curator.toml

# Anyone can log in as anyone here, without a password.  Real: your authenticator, such as OAuthenticator or LDAP.
# A person who can log in as ana is ana for the service too.
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True

# Every notebook server is a process of the user who starts the Hub, and can read the files of the service here.  Real:
# one account or container each (SystemUserSpawner, DockerSpawner, KubeSpawner), and the service under an account, or on
# a machine, that they cannot reach other than through the proxy.
c.JupyterHub.spawner_class = "simple"
c.Spawner.cmd = [sys.executable, "-m", "jupyterhub.singleuser"]
c.Spawner.default_url = "/lab"

# --- the service ---
# An external service: the curator starts it, and the Hub's administrators do not get its files.  With a `command` here,
# the Hub would start it, under its own account.  The proxy forwards /services/dpnb to it, with the path: `prefix` in
# curator.toml.  Real: add the Hub's public name to `names` there; to another machine use https, which the proxy's
# settings must then trust.
c.JupyterHub.services = [{"name": "dpnb", "url": "http://127.0.0.1:8443"}]
c.JupyterHub.custom_scopes = {
    "custom:dpnb:curate": {
        "description": "Read who asked what, decide requests, move caps, revoke and freeze, in dpnb."
    }
}

# --- who may use it ---
# A user in neither group gets no token for the service.  Real: the authenticator can manage the groups.  Who may change
# them, or may make tokens of other users, as the Hub's administrators may, can act as any analyst.
c.JupyterHub.load_groups = {"analysts": {"users": ["ana", "bob"]}, "curators": {"users": ["cora"]}}
c.JupyterHub.load_roles = [
    {"name": "dpnb-analyst", "scopes": ["access:services!service=dpnb"], "groups": ["analysts"]},
    {
        "name": "dpnb-curator",
        "scopes": ["access:services!service=dpnb", "custom:dpnb:curate"],
        "groups": ["curators"],
    },
]

# What a notebook server may ask of the Hub: the first two are what it always may.  With the third, dpnb.connect() has
# the Hub make a token for the service alone; the notebook's own token is never sent to the service.
c.Spawner.server_token_scopes = ["users:activity!user", "access:servers!server", "tokens!user"]

# The address of the service for notebooks: the public one of the proxy.  Plain http only on one machine.
c.Spawner.environment = {"DPNB_SERVICE": "http://127.0.0.1:8000/services/dpnb"}
