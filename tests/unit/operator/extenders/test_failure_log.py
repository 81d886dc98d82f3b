"""Failures of extenders are logged once a minute."""

from __future__ import annotations

import structlog

from stowage.operator.extenders.failure_log import FailureLog


def test_an_event_is_logged_once_a_minute_with_the_number_of_lines_left_out() -> None:
    now = 0.0
    failures = FailureLog(lambda: now, extender="http://a")
    with structlog.testing.capture_logs() as logs:
        for pod in ("shop/a", "shop/b", "shop/c"):
            failures.warning("extender ignored", pod=pod, error="refused")
        now = 60.0
        failures.warning("extender ignored", pod="shop/d", error="refused")
    line = {"event": "extender ignored", "log_level": "warning", "extender": "http://a"}
    assert logs == [
        line | {"pod": "shop/a", "error": "refused"},
        line | {"pod": "shop/d", "error": "refused", "suppressed": 2},
    ]


def test_another_event_is_logged_at_once() -> None:
    failures = FailureLog(lambda: 0.0)
    with structlog.testing.capture_logs() as logs:
        failures.warning("extender ignored")
        failures.warning("extender gave no scores")
    assert [line["event"] for line in logs] == ["extender ignored", "extender gave no scores"]
