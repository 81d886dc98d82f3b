"""`stowage run` in this process."""

from __future__ import annotations

from typer.testing import CliRunner

from stowage.cli.main import app


def run_command(*flags: str, **environment: str) -> tuple[int, str]:
    """Run the command with log lines as text; its exit status and stderr."""
    arguments = ["run", "--logging-format=text", *flags]
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "200", **environment})
    return result.exit_code, result.stderr
