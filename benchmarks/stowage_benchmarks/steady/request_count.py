"""Counts the requests that an API server has answered, from its ``/metrics``."""

from __future__ import annotations

from stowage.operator.client.api_error import ApiError
from stowage.operator.client.connection import Connection

_METRIC = "apiserver_request_total{"


async def answered_requests(connection: Connection) -> float | None:
    """Requests answered since the server's start; None if it does not say.

    Raises:
        ApiError: the server refuses to.
    """
    async with connection.session.get(f"{connection.server}/metrics") as response:
        text = await response.text()
        if response.status != 200:
            raise ApiError(response.status, "", f"/metrics: {text[:200]}")
    return sum_of_requests(text)


def sum_of_requests(exposition: str) -> float | None:
    r"""The sum of ``apiserver_request_total`` over all labels; None if there is no such metric.

    Examples:
        >>> sum_of_requests('apiserver_request_total{code="200"} 2\n'
        ...                 'apiserver_request_total{code="409"} 1\n')
        3.0
    """
    values = [
        float(line.rpartition(" ")[2])
        for line in exposition.splitlines()
        if line.startswith(_METRIC)
    ]
    return sum(values) if values else None
