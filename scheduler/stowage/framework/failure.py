"""Failures of plugins: an exception that carries an Error status naming the plugin."""

from __future__ import annotations

from stowage.api.status import Code, Status


class PluginFailed(Exception):  # noqa: N818 - it names the finding, as InvalidObject does
    """A plugin raised, or returned an invalid answer; it ends the cycle of one pod.

    Attributes:
        status: The Error status to report, with the plugin's name and the original text.
    """

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


def failed(doing: str, plugin: str, cause: Exception | Status) -> PluginFailed:
    """The failure of `plugin`, worded as kube-scheduler wraps it.

    Args:
        doing: What was being run, e.g. ``running "NodePorts" filter plugin``.
        plugin: The plugin's name.
        cause: The exception, or a status that is neither a success nor a rejection.
    """
    if isinstance(cause, PluginFailed):
        return cause
    text = cause.message if isinstance(cause, Status) else str(cause) or type(cause).__name__
    failure = PluginFailed(Status(Code.ERROR, (f"{doing}: {text}",), plugin))
    if isinstance(cause, Exception):
        failure.__cause__ = cause
    return failure
