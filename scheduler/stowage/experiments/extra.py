"""The packages of the extra ``simulate``, which only some commands need."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

EXTRA = "simulate"


class MissingExtra(Exception):  # noqa: N818 - it names the finding
    """A package of the extra is not installed; the message says how to get it."""


def is_installed(module: str) -> bool:
    """Whether a package can be imported."""
    return find_spec(module) is not None


def import_extra(module: str, purpose: str) -> Any:
    """Import a module of the extra.

    Args:
        module: Its full name.
        purpose: What needs it, such as a flag.

    Raises:
        MissingExtra: Its package is not installed.
    """
    package = module.partition(".")[0]
    if not is_installed(package):
        raise MissingExtra(
            f"{purpose} needs the package {package}, which is not installed. Stowage's extra "
            f"{EXTRA} has it: see docs/how-to/install.md (stowage on PyPI is another project)"
        )
    return import_module(module)
