"""Reports the exceptions of out-of-tree plugins, with their tracebacks, to the shell.

The runtime turns an exception into an Error of one pod, whose text has no traceback.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, TypeAlias

#: (plugin, extension point, exception) -> None.
ReportException: TypeAlias = Callable[[str, str, Exception], None]


def reported(
    plugin: str, member: str, method: Callable[..., Any], report: ReportException
) -> Callable[..., Any]:
    """`method` with its exceptions reported before they are raised on.

    Args:
        plugin: The plugin's name.
        member: The method's name in `extension_points`.
        method: The method.
        report: Receives the exceptions.
    """
    point = extension_point(member)
    if inspect.iscoroutinefunction(method):
        return _reported_coroutine(plugin, point, method, report)

    @wraps(method)
    def ask(*args: Any) -> Any:
        try:
            return method(*args)
        except Exception as error:
            report(plugin, point, error)
            raise

    return ask


def extension_point(member: str) -> str:
    """The name of an extension point in kube-scheduler, e.g. ``PreFilter`` of ``pre_filter``."""
    if member in ("sort_key", "unsortable"):
        return "QueueSort"
    return "".join(word.title() for word in member.split("_"))


def _reported_coroutine(
    plugin: str,
    point: str,
    method: Callable[..., Coroutine[Any, Any, Any]],
    report: ReportException,
) -> Callable[..., Coroutine[Any, Any, Any]]:
    @wraps(method)
    async def ask(*args: Any) -> Any:
        try:
            return await method(*args)
        except Exception as error:
            report(plugin, point, error)
            raise

    return ask
