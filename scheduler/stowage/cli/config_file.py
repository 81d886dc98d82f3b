"""Reads KubeSchedulerConfiguration files and prints their errors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import yaml

from stowage.api.config.loading import (
    KIND,
    ConfigError,
    InvalidConfiguration,
    KubeSchedulerConfiguration,
    load_configuration,
)
from stowage.api.config.policy import is_policy
from stowage.api.decoding.bounded_yaml import INVALID, Document, StrictLoader, documents
from stowage.api.decoding.nesting import problem_of

if TYPE_CHECKING:
    from rich.console import Console

STANDARD_INPUT = Path("-")
MAX_CHARACTERS = 2**18
"""A longer text would hold up the engine, which applies a configuration between two cycles."""
_MAX_ERROR_LENGTH = 500


def read_configuration(path: Path | None) -> KubeSchedulerConfiguration:
    """Load a configuration file; None loads the defaults.

    Raises:
        InvalidConfiguration: the file cannot be read, is not YAML, or is invalid.
    """
    if path is None:
        return load_configuration()
    return parse_configuration(read_text(path, "--config"), "--config", str(path))


def read_text(path: Path, flag: str) -> str:
    """The text of a file; ``-`` is the standard input.

    Raises:
        InvalidConfiguration: the file cannot be read.
    """
    try:
        content = sys.stdin.buffer.read() if path == STANDARD_INPUT else path.read_bytes()
        return content.decode()
    except OSError as error:
        expectation = f"a readable file; {error.strerror}"
        raise InvalidConfiguration([ConfigError(flag, str(path), expectation)]) from error
    except UnicodeDecodeError as error:
        expectation = f"a YAML document; {error}"
        raise InvalidConfiguration([ConfigError(flag, str(path), expectation)]) from error


def parse_configuration(text: str, flag: str, source: str) -> KubeSchedulerConfiguration:
    """Load a configuration from its text; the arguments are those of `parse_document`.

    Raises:
        InvalidConfiguration: the text is not YAML, or is invalid.
    """
    builtins = parse_document(text, flag, source).builtins
    if is_policy(builtins):
        expectation = f"{KIND}; use --policy-config-file, or stowage config convert"
        raise InvalidConfiguration([ConfigError("kind", builtins["kind"], expectation)])
    return load_configuration(builtins)


def parse_document(text: str, flag: str, source: str) -> Document:
    """Read the text of a configuration.

    Args:
        text: YAML or JSON.
        flag: The flag that names its source, for error texts.
        source: The source, for error texts.

    Raises:
        InvalidConfiguration: the text is not YAML.
    """
    if len(text) > MAX_CHARACTERS:
        expected = f"at most {MAX_CHARACTERS:,} characters; it has {len(text):,}"
        raise InvalidConfiguration([ConfigError(flag, source, expected)])
    try:
        document = _read_yaml(_without_tabs(text))
    except INVALID as error:
        one_line = " ".join(_yaml_error(error).split())[:_MAX_ERROR_LENGTH]
        raise InvalidConfiguration(
            [ConfigError(flag, source, f"a YAML document; {one_line}")]
        ) from error
    if document is None or document.builtins is None:
        raise InvalidConfiguration(
            [ConfigError(flag, source, "a KubeSchedulerConfiguration; it is empty")]
        )
    return document


def _without_tabs(text: str) -> str:
    """JSON with spaces for tabs, which YAML does not take between values; other text as it is."""
    if "\t" not in text:
        return text
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    return text.replace("\t", " ")  # the texts of JSON contain no tabs


def _yaml_error(error: Exception) -> str:
    """The error and its position, without the text around it, which may contain secrets."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return problem_of(error).partition(": '")[0]
    what = ", ".join(filter(None, (getattr(error, "context", ""), getattr(error, "problem", ""))))
    return f"{what}, line {mark.line + 1}, column {mark.column + 1}"


def _read_yaml(text: str) -> Document | None:
    """The document; None if the text has none.

    Raises:
        yaml.YAMLError: the text is not YAML, has several documents, or its aliases expand to too
            many values.
        ValueError: a scalar is invalid.
        RecursionError: the document is nested too deeply.
    """
    found = documents(text, StrictLoader)
    first = next(found, None)
    second = next(found, None)
    if first is not None and second is not None:
        raise yaml.composer.ComposerError(
            "expected a single document in the stream",
            first.root.start_mark,
            "but found another document",
            second.root.start_mark,
        )
    return first


def print_errors(
    console: Console, invalid: InvalidConfiguration, place: Callable[[str], str] | None = None
) -> None:
    """Print the errors of a configuration, a line each; no line is cut or wrapped.

    Args:
        console: Where to.
        invalid: The errors.
        place: Returns the place of a field in its file, such as ``config.yaml:12``.
    """
    for error in invalid.errors:
        where = f"{place(error.path)}: " if place else ""
        console.print(f"{where}{error}", markup=False, highlight=False, soft_wrap=True)
