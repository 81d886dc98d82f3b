"""Who may ask: whoever has the token of the address, from a page of this server.

The server listens on 127.0.0.1. Still other users of the machine reach the port, and pages of other
sites may send requests to it from a browser. So every request needs the token, which is in the
address that the command prints, and then in a cookie that other sites cannot send. The Host header
must name this server: a foreign name that resolves to 127.0.0.1 (DNS rebinding) is refused.
"""

from __future__ import annotations

import hmac
import re
from http import HTTPStatus
from urllib.parse import urlencode

from aiohttp import web

from stowage.console.serving.responses import error_response

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
NAMES = ("127.0.0.1", "localhost")
_BEARER = re.compile(r"Bearer (\S+)", re.IGNORECASE)
_OTHER_SITES = frozenset({"cross-site", "same-site"})
_OPEN_THE_ADDRESS = "open the address that stowage console printed: it has the token"


class Access:
    """Checks requests.

    Args:
        token: The token.
        port: The port of the server.
    """

    def __init__(self, token: str, port: int) -> None:
        self._token = token
        self._port = port

    @property
    def cookie(self) -> str:
        """The name of the cookie; cookies are not kept apart by port."""
        return f"stowage-console-{self._port}"

    def refusal(self, request: web.Request) -> web.Response | None:
        """The answer to a request that is not allowed; None if it is."""
        if request.headers.getall("Host", []) not in [[each] for each in self._hosts()]:
            return error_response(
                HTTPStatus.MISDIRECTED_REQUEST, "Host: expected the printed address"
            )
        origin = request.headers.get("Origin")
        if origin is not None and origin not in {f"http://{each}" for each in self._hosts()}:
            return error_response(HTTPStatus.FORBIDDEN, "Origin: expected the printed address")
        is_foreign = request.headers.get("Sec-Fetch-Site") in _OTHER_SITES
        if is_foreign and request.headers.get("Sec-Fetch-Mode") != "navigate":
            return error_response(
                HTTPStatus.FORBIDDEN, "expected a request of a page of this server"
            )
        if not self._has_token(request):
            return _unauthorized(request)
        return None

    def entry(self, request: web.Request) -> web.Response | None:
        """The answer to an address with the token: a cookie, and the address without the token."""
        given = request.query.get("token")
        if given is None or request.method != "GET" or not self._is_token(given):
            return None
        left = [(name, value) for name, value in request.query.items() if name != "token"]
        # Exactly one leading slash: "//host" would lead to another server. The path stays encoded:
        # it may have line breaks.
        path = "/" + request.rel_url.raw_path.lstrip("/")
        location = f"{path}?{urlencode(left)}" if left else path
        if request.headers.get("Sec-Fetch-Site") in _OTHER_SITES:
            # A redirect would continue the navigation of the other site, without the cookie.
            response = web.Response(text="", headers={"Refresh": f"0; url={location}"})
        else:
            response = web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": location})
        response.set_cookie(self.cookie, self._token, path="/", httponly=True, samesite="Strict")
        return response

    def _hosts(self) -> list[str]:
        return [f"{name}:{self._port}" for name in NAMES]

    def _has_token(self, request: web.Request) -> bool:
        bearer = _BEARER.fullmatch(request.headers.get("Authorization", ""))
        if bearer is not None:
            return self._is_token(bearer[1])
        return self._is_token(request.cookies.get(self.cookie, ""))

    def _is_token(self, given: str) -> bool:
        # A header may have bytes that are no text.
        known = self._token.encode()
        return hmac.compare_digest(given.encode(errors="surrogateescape"), known)


def _unauthorized(request: web.Request) -> web.Response:
    """The answer without the token: for a person if a person asked."""
    status = HTTPStatus.UNAUTHORIZED
    if request.path.startswith(("/api/", "/stream")):
        return error_response(status, _OPEN_THE_ADDRESS)
    return web.Response(status=status, text=f"{_OPEN_THE_ADDRESS}\n")
