"""Who sends a request: a holder of one of the service's tokens, or a user of JupyterHub.

A name is that of one person: the user ``ana`` of JupyterHub and the holder of a token for ``ana`` share the part of the
budget, the rows and the charges of ``ana``.  A person has one role, and the curator's file of tokens takes precedence:
while ``ana`` has a valid token with one role, JupyterHub cannot give ``ana`` another.
"""

from __future__ import annotations

from dpnb.copying import NotCopyable
from dpnb.errors import AccessDenied
from dpnb.service.hub import HubIdentities
from dpnb.service.tokens import PREFIX, Identity, TokenStore


class Identities(NotCopyable):
    """Who has a token: one of the service's own, or one of a user of JupyterHub."""

    def __init__(self, tokens: TokenStore, hub: HubIdentities | None = None) -> None:
        self._tokens, self._hub = tokens, hub

    async def find(self, token: str) -> Identity | None:
        """Who has a token; None if it is unknown, expired or revoked.  Raises what `HubIdentities.find` raises."""
        hub = self._hub_for(token)
        return self._tokens.identity(token) if hub is None else self._with_one_role(await hub.find(token))

    def confirm(self, token: str, person: Identity) -> bool:
        """Whether a person has a token now; waits for JupyterHub, raises `ServiceUnavailable` if it does not reply."""
        hub = self._hub_for(token)
        try:
            found = self._tokens.identity(token) if hub is None else self._with_one_role(hub.ask(token))
        except AccessDenied:
            return False
        return found == person

    def last_known(self, token: str, person: Identity) -> bool:
        """Whether a person has a token, as far as is known without waiting, for an open stream."""
        hub = self._hub_for(token)
        try:
            found = self._tokens.identity(token) if hub is None else self._with_one_role(hub.last_known(token))
        except AccessDenied:
            return False
        return found == person

    def _hub_for(self, token: str) -> HubIdentities | None:
        """The Hub, if a token may be one of its own: those of the service are not shown to it."""
        return None if not token or token.startswith(PREFIX) else self._hub

    def _with_one_role(self, person: Identity | None) -> Identity | None:
        """A user of JupyterHub, unless the curator has given the name another role."""
        role = None if person is None else self._tokens.role_of(person.name)
        if person is not None and role is not None and role != person.role:
            raise AccessDenied(
                f"role: {person.name!r} has a token of the service with the role {role!r}, and a person has one role; "
                f"the scopes of the token of JupyterHub give {person.role!r}; ask the curator to revoke the token of "
                "the service"
            )
        return person


class Valid:
    """Whether the token of a request is still valid, and that of the person who had it on arrival."""

    def __init__(self, identities: Identities, token: str, person: Identity) -> None:
        self._identities, self._token, self._person = identities, token, person

    def __call__(self) -> bool:
        """Whether it is valid now; may wait for JupyterHub."""
        return self._identities.confirm(self._token, self._person)

    def last_known(self) -> bool:
        """Whether it is valid as far as is known without waiting."""
        return self._identities.last_known(self._token, self._person)
