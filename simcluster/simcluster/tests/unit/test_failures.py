"""The line by which a command reports an error."""

import pytest

from simcluster.harness.failures import failure_line


@pytest.mark.parametrize(
    ("error", "text"),
    [(OSError("no route to [host]"), "no route to \\[host]"), (TimeoutError(), "TimeoutError()")],
)
def test_an_error_without_a_text_is_named_by_its_type(error: Exception, text: str) -> None:
    assert failure_line(error) == f"[red]failed:[/red] {text}"
