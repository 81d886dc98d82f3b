"""URLs, as ``net/url`` of Go parses them.

The text is handled as its UTF-8 bytes, one character of Latin-1 each, since escapes are bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from stowage.cel.errors import CelRuntimeError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_PORT = re.compile(r"(?::[0-9]*)?")
_ESCAPE = re.compile("%(?P<hex>[0-9A-Fa-f]{2})?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_USERINFO = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_BAD_IN_HOST = re.compile(r"[^A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>\"%\x80-\xff]")
_UNESCAPED_IN_PATH = re.compile(r"[^A-Za-z0-9\-_.~$&+,/:;=@]")
_VALID_PATH = re.compile(r"[A-Za-z0-9\-_.~!$&'()*+,;=:@/\[\]%]*")


@dataclass(frozen=True, slots=True)
class URL:
    """The parts of a URL; `path` is unescaped, `raw_path` is as written."""

    scheme: str
    opaque: str
    user: str
    host: str
    path: str
    raw_path: str
    raw_query: str
    force_query: bool
    fragment: str

    @property
    def hostname(self) -> str:
        """The host without port and brackets."""
        name = self.host[: len(self.host) - len(self.port)].removesuffix(":")
        name = name if self._has_port else self.host
        return name[1:-1] if name.startswith("[") and name.endswith("]") else name

    @property
    def port(self) -> str:
        """The port, empty if there is none."""
        return self.host.rpartition(":")[2] if self._has_port else ""

    @property
    def _has_port(self) -> bool:
        _, colon, port = self.host.rpartition(":")
        return bool(colon) and _PORT.fullmatch(colon + port) is not None

    @property
    def escaped_path(self) -> str:
        """The path with escapes: as written if that is valid."""
        if _VALID_PATH.fullmatch(self.raw_path):
            return self.raw_path
        if self.path == "*":
            return "*"
        return _UNESCAPED_IN_PATH.sub(lambda match: f"%{ord(match[0]):02X}", self.path)

    def query(self) -> dict[str, list[str]]:
        """The values of the query by key; pairs that are malformed are left out."""
        found: dict[str, list[str]] = {}
        for pair in self.raw_query.split("&"):
            if not pair or ";" in pair:
                continue
            key, _, value = pair.partition("=")
            try:
                parsed = _text(_unescape(key.replace("+", " ")))
                found.setdefault(parsed, []).append(_text(_unescape(value.replace("+", " "))))
            except CelRuntimeError:
                continue
        return found


@lru_cache(maxsize=1024)
def parse_url(text: str) -> URL:
    """Parse an absolute URL or path, with a fragment.

    Raises:
        CelRuntimeError: the text is neither.
    """
    parse_request_uri(text)
    main, _, fragment = _bytes(text).partition("#")
    _unescape(fragment)
    return _parse(main, fragment, via_request=False)


def parse_request_uri(text: str) -> URL:
    """Parse an absolute URL or path without a fragment.

    Raises:
        CelRuntimeError: the text is neither.
    """
    return _parse(_bytes(text), "", via_request=True)


def _error(reason: str) -> CelRuntimeError:
    return CelRuntimeError(f"URL parse error during conversion from string: {reason}")


def _bytes(text: str) -> str:
    return text.encode().decode("latin-1")


def _text(raw: str) -> str:
    return raw.encode("latin-1").decode(errors="replace")


def _parse(text: str, fragment: str, via_request: bool) -> URL:
    if _CONTROL.search(text):
        raise _error("invalid control character in URL")
    if not text and via_request:
        raise _error("empty url")
    if text == "*":
        return URL("", "", "", "", "*", "*", "", False, fragment)
    scheme, rest = _split_scheme(text)
    force_query = rest.endswith("?") and rest.count("?") == 1
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return URL(scheme, rest, "", "", "", "", query, force_query, fragment)
        if via_request:
            raise _error("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise _error("first path segment in URL cannot contain colon")
    user = host = ""
    has_authority = scheme or (not via_request and not rest.startswith("///"))
    if has_authority and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        user, host = _split_authority(authority)
    path = _unescape(rest)
    return URL(scheme, "", user, _text(host), path, rest, query, force_query, fragment)


def _split_scheme(text: str) -> tuple[str, str]:
    if text.startswith(":"):
        raise _error("missing protocol scheme")
    match = _SCHEME.match(text)
    return (match[1].lower(), text[match.end() :]) if match else ("", text)


def _split_authority(authority: str) -> tuple[str, str]:
    user, _, host = authority.rpartition("@")
    if not _USERINFO.fullmatch(user):
        raise _error("net/url: invalid userinfo")
    _unescape(user)
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            raise _error("missing ']' in host")
        port = host[end + 1 :]
    else:
        colon = host.rfind(":")
        port = host[colon:] if colon >= 0 else ""
    if not _PORT.fullmatch(port):
        raise _error(f'invalid port "{port}" after host')
    if _BAD_IN_HOST.search(host):
        raise _error("invalid character in host name")
    return user, _unescape(host, in_host=True)


def _unescape(text: str, in_host: bool = False) -> str:
    def unescaped(match: re.Match[str]) -> str:
        code = int(match["hex"], 16) if match["hex"] else -1
        if code < 0 or (in_host and code < 0x80 and match[0] != "%25"):
            raise _error("invalid URL escape")
        return chr(code)

    return _ESCAPE.sub(unescaped, text)
