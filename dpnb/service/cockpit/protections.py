"""Which requests the cockpit accepts, and the headers of every response.

A request must be addressed to one of the cockpit's own names, so that a page under another name that resolves to this
address cannot read anything.  A request that changes something must come from the cockpit's own page: the browser
states where it comes from in ``Origin``, and no other page can change that.
"""

from __future__ import annotations

from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)

HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Origins:
    """The names of the cockpit."""

    names: tuple[str, ...]  # host names, without a port
    is_secure: bool = False  # whether it is served with TLS

    def refusal(self, method: str, headers: Headers) -> str:
        """Why a request is refused; empty if it is accepted."""
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        host = hosts[0] if len(hosts) == 1 else ""
        if _without_port(host) not in self.names:
            return "host: must be one of the names of this service"
        own = f"{'https' if self.is_secure else 'http'}://{host}"
        if origins and origins != [own]:
            return "origin: must be this page"
        if method not in ("GET", "HEAD") and not origins:
            return "origin: must be stated"
        # Another port of this machine is the same site, whose cookies and requests a browser does not hold back.
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return "site: must be this page"
        return ""


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() and not host.endswith("]") else host


class Protected:
    """An application behind the protections, served under the names of `origins`."""

    def __init__(self, app: ASGIApp, origins: Origins) -> None:
        self._app, self._origins = app, origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        refusal = self._origins.refusal(scope["method"], Headers(scope=scope))
        app = PlainTextResponse(refusal, 403) if refusal else self._app
        await app(scope, receive, send_protected)
