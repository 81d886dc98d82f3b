"""Requests and answers as the endpoints of the API server see them, without HTTP."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from simcluster.apiserver import errors
from simcluster.apiserver.answer_formats import format_for
from simcluster.apiserver.formats import Format
from simcluster.apiserver.negotiation import JSON_TYPE
from simcluster.auth.users import ADMINISTRATOR, User
from simcluster.kinds.resources import Resource
from simcluster.store.store import encode


class ApiRequest(NamedTuple):
    """A request; ``upgrades`` asks for another protocol, ``if_none_match`` is an ETag."""

    method: str
    path: str
    query: Mapping[str, str]
    content_type: str = ""
    accept: str = ""
    body: bytes = b""
    user: User = ADMINISTRATOR
    user_agent: str = ""
    upgrades: bool = False
    if_none_match: str = ""

    @property
    def is_dry_run(self) -> bool:
        """Whether nothing is to be stored."""
        return self.query.get("dryRun") == "All"

    @property
    def directive(self) -> str:
        """How unknown fields are treated: Strict, Warn or Ignore."""
        return self.query.get("fieldValidation", "")

    @property
    def manager(self) -> str:
        """The field manager."""
        named = self.query.get("fieldManager", "")
        return named or self.user_agent.partition("/")[0][:128] or "unknown"

    def format_for(self, resource: Resource) -> Format:
        """The format of the answer.

        Raises:
            ApiError: 406 or 400, the format is not available.
        """
        return format_for(resource, self.accept, self.query.get("includeObject", ""))


class Answer(NamedTuple):
    """Status, body, further headers and warnings of an answer."""

    status: int
    body: bytes
    retry_after_s: int = 0
    warnings: tuple[str, ...] = ()
    headers: Mapping[str, str] = MappingProxyType({})
    content_type: str = JSON_TYPE

    def warning(self, warnings: tuple[str, ...]) -> "Answer":
        """The same with further warnings."""
        return self._replace(warnings=self.warnings + warnings) if warnings else self


def error_answer(error: errors.ApiError) -> Answer:
    """The answer that carries an error."""
    return Answer(error.code, encode(error.status()), error.retry_after_s)
