"""How the failure of a plugin travels: as an Error status that names the plugin."""

from __future__ import annotations

from stowage.api.status import Code, Status


class PluginFailed(Exception):  # noqa: N818 - it names the finding, as InvalidObject does
    """A plugin raised, or answered what it must not; only this pod's cycle ends.

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
        plugin: Whose failure it is.
        cause: The exception, or the status that was no success and no rejection.
    """
    if isinstance(cause, PluginFailed):
        return cause
    text = cause.message if isinstance(cause, Status) else str(cause) or type(cause).__name__
    failure = PluginFailed(Status(Code.ERROR, (f"{doing}: {text}",), plugin))
    if isinstance(cause, Exception):
        failure.__cause__ = cause
    return failure
