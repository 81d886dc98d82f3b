"""How a command says on the terminal why it fails."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape


def print_error(console: Console, error: object) -> None:
    """Print the reason as one line, however long it is, and however many lines it has."""
    text = " ".join(str(error).split())
    console.print(f"[red]error:[/red] {escape(text)}", soft_wrap=True)


def os_error_text(error: OSError) -> str:
    """The file, if one is concerned, and what is wrong with it."""
    return f"{error.filename}: {error.strerror or error}" if error.filename else str(error)
