"""The recorded decisions that a question is about: of a running scheduler, or in files."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import Annotated, Protocol
from urllib.parse import SplitResult, urlencode, urlsplit

import msgspec
import typer

from stowage.api.decisions import Decision, DecisionPage, DecisionQuery
from stowage.cli.flag_groups import FlagGroup, Panel

_DECISIONS = Panel("The decisions")
_TIMEOUT_S = 10.0
_LOG_FILES = "decisions-*.jsonl"


class UnreadableDecisions(Exception):  # noqa: N818 - it names the finding
    """The recorded decisions cannot be read; the message says why."""


class DecisionReader(Protocol):
    """Reads recorded decisions."""

    def latest(self, query: DecisionQuery) -> list[Decision]:
        """The newest decisions that the query wants, oldest first."""
        ...

    def following(self, query: DecisionQuery) -> list[Decision]:
        """The decisions that the query wants since the last call."""
        ...


class DecisionSource(FlagGroup, frozen=True):
    """The flags that say where the decisions are."""

    server: Annotated[
        str | None,
        _DECISIONS.option(
            metavar="URL",
            help="The decisions of a running scheduler: address of its endpoints, such as "
            "https://localhost:10259.",
        ),
    ] = None
    token_file: Annotated[
        Path | None, _DECISIONS.option(metavar="FILE", help="Bearer token for --server.")
    ] = None
    certificate_authority: Annotated[
        Path | None,
        _DECISIONS.option(
            metavar="FILE",
            help="PEM certificates that verify --server, instead of those of the system.",
        ),
    ] = None
    insecure: Annotated[
        bool,
        _DECISIONS.option(
            "--insecure-skip-tls-verify", help="Do not verify the certificate of --server."
        ),
    ] = False
    directory: Annotated[
        Path | None,
        _DECISIONS.option(
            "--decision-log",
            metavar="DIR",
            help="The decisions in the files that stowage run --decision-log wrote.",
        ),
    ] = None

    @property
    def is_given(self) -> bool:
        """Whether there is a source."""
        return self.server is not None or self.directory is not None

    def reader(self) -> DecisionReader:
        """A reader of this source.

        Raises:
            UnreadableDecisions: A file that the flags name cannot be read.
            BadParameter: The flags contradict each other.
        """
        if (self.server is None) == (self.directory is None):
            raise typer.BadParameter("expected one of --server and --decision-log")
        if self.directory is not None:
            return LogReader(self.directory)
        url = urlsplit(self.server or "")
        if url.scheme != "https" or not url.hostname:
            raise typer.BadParameter(f"--server: expected https://HOST:PORT, got {self.server}")
        try:
            return ServerReader(url, self._tls(), self._headers())
        except OSError as error:
            name = error.filename or self.certificate_authority
            raise UnreadableDecisions(f"{name}: {error.strerror or error}") from error

    def _tls(self) -> ssl.SSLContext:
        authority = self.certificate_authority
        context = ssl.create_default_context(cafile=str(authority) if authority else None)
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def _headers(self) -> dict[str, str]:
        if self.token_file is None:
            return {}
        return {"Authorization": f"Bearer {self.token_file.read_text(encoding='utf-8').strip()}"}


class ServerReader:
    """Reads ``/debug/decisions`` of a running scheduler.

    Args:
        url: Address of its endpoints.
        tls: Verifies its certificate.
        headers: Headers of each request.
    """

    def __init__(self, url: SplitResult, tls: ssl.SSLContext, headers: dict[str, str]) -> None:
        self._url = url
        self._tls = tls
        self._headers = headers
        self._last = ""

    def latest(self, query: DecisionQuery) -> list[Decision]:
        """See `DecisionReader`."""
        page = self._page(query)
        self._last = page.last
        return list(page.decisions)

    def following(self, query: DecisionQuery) -> list[Decision]:
        """See `DecisionReader`."""
        return self.latest(msgspec.structs.replace(query, after=self._last))

    def _page(self, query: DecisionQuery) -> DecisionPage:
        fields = {name: value for name, value in msgspec.structs.asdict(query).items() if value}
        try:
            status, body = self._get(f"{self._url.path.rstrip('/')}/debug/decisions", fields)
        except (OSError, HTTPException) as error:
            raise UnreadableDecisions(f"{self._url.geturl()}: {error}") from error
        if status != 200:
            text = body[:300].decode(errors="replace").strip()
            raise UnreadableDecisions(
                f"{self._url.geturl()}: status {status}{_HINTS.get(status, '')}: {text}"
            )
        try:
            return msgspec.json.decode(body, type=DecisionPage)
        except msgspec.MsgspecError as error:
            raise UnreadableDecisions(
                f"{self._url.geturl()}: expected decisions; {error}"
            ) from error

    def _get(self, path: str, fields: dict[str, object]) -> tuple[int, bytes]:
        host, port = self._url.hostname or "", self._url.port or 443
        connection = HTTPSConnection(host, port, timeout=_TIMEOUT_S, context=self._tls)
        try:
            connection.request("GET", f"{path}?{urlencode(fields)}", headers=self._headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


_HINTS = {
    401: " (the token is not valid)",
    403: " (the user needs the right to get /debug/decisions)",
    404: " (expected the endpoints of stowage run)",
}


class LogReader:
    """Reads the files of a decision log.

    Args:
        directory: The directory of the files.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read_up_to: dict[Path, int] = {}

    def latest(self, query: DecisionQuery) -> list[Decision]:
        """See `DecisionReader`."""
        found: list[Decision] = []
        for file in reversed(self._files()):
            if len(found) < query.limit:
                found = [*self._new_lines(file, query), *found]
            else:
                self._read_up_to[file] = file.stat().st_size
        return found[-query.limit :]

    def following(self, query: DecisionQuery) -> list[Decision]:
        """See `DecisionReader`."""
        return [each for file in self._files() for each in self._new_lines(file, query)]

    def _files(self) -> list[Path]:
        if not self._directory.is_dir():
            raise UnreadableDecisions(f"{self._directory}: expected a directory")
        return sorted(self._directory.glob(_LOG_FILES))

    def _new_lines(self, file: Path, query: DecisionQuery) -> Iterator[Decision]:
        """The wanted decisions in the complete lines since the last call."""
        start = self._read_up_to.get(file, 0)
        try:
            with file.open("rb") as opened:
                opened.seek(start)
                complete = opened.read().rpartition(b"\n")[0]
        except FileNotFoundError:
            return  # The scheduler deletes its oldest files.
        except OSError as error:
            raise UnreadableDecisions(f"{file}: {error.strerror or error}") from error
        self._read_up_to[file] = start + len(complete) + 1 if complete else start
        for line in complete.splitlines():
            try:
                decision = _DECODER.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise UnreadableDecisions(f"{file}: expected a decision a line; {error}") from error
            if query.accepts_decision(decision):
                yield decision


_DECODER = msgspec.json.Decoder(Decision)
