"""Logs the exceptions of plugins with their tracebacks, once per plugin and error."""

from __future__ import annotations

import structlog

log = structlog.get_logger("stowage.operator.logging.plugin_exceptions")


class PluginExceptionLog:
    """Logs each error of a plugin once: the same type, raised at the same line of code.

    The text is not compared, because it may name the pod.
    """

    def __init__(self) -> None:
        self._logged: set[tuple[str, str, str, str, int]] = set()

    def report(self, plugin: str, point: str, error: Exception) -> None:
        """Log an exception unless it was logged before."""
        key = (plugin, point, type(error).__name__, *_raised_at(error))
        if key in self._logged:
            return
        self._logged.add(key)
        log.error(
            "plugin raised",
            plugin=plugin,
            extension_point=point,
            error=str(error) or type(error).__name__,
            exc_info=error,
        )


def _raised_at(error: Exception) -> tuple[str, int]:
    """File and line of the innermost frame."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return ("", 0) if trace is None else (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
