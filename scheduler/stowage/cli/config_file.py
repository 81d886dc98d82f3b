"""Reads KubeSchedulerConfiguration files and prints their errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from stowage.api.config.loading import (
    ConfigError,
    InvalidConfiguration,
    KubeSchedulerConfiguration,
    load_configuration,
)

MAX_CHARACTERS = 2**20
MAX_VALUES = 500_000
_UNBOUNDED = 2 * MAX_VALUES
_MAX_ERROR_LENGTH = 500


def read_configuration(path: Path | None) -> KubeSchedulerConfiguration:
    """Load a configuration file; None loads the defaults.

    Raises:
        InvalidConfiguration: the file cannot be read, is not YAML, or is invalid.
    """
    if path is None:
        return load_configuration()
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidConfiguration(
            [ConfigError("--config", str(path), f"a readable file; {error.strerror}")]
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidConfiguration(
            [ConfigError("--config", str(path), f"a YAML document; {error}")]
        ) from error
    return parse_configuration(text, "--config", str(path))


def parse_configuration(text: str, flag: str, source: str) -> KubeSchedulerConfiguration:
    """Load a configuration from its text.

    Args:
        text: YAML or JSON.
        flag: The flag that names its source, for error texts.
        source: The source, for error texts.

    Raises:
        InvalidConfiguration: the text is not YAML, or is invalid.
    """
    if len(text) > MAX_CHARACTERS:
        expected = f"at most {MAX_CHARACTERS:,} characters, as a ConfigMap may hold"
        raise InvalidConfiguration([ConfigError(flag, source, expected)])
    try:
        builtins = _read_yaml(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        one_line = " ".join(_yaml_error(error).split())[:_MAX_ERROR_LENGTH]
        raise InvalidConfiguration(
            [ConfigError(flag, source, f"a YAML document; {one_line}")]
        ) from error
    if builtins is None:
        raise InvalidConfiguration(
            [ConfigError(flag, source, "a KubeSchedulerConfiguration; it is empty")]
        )
    return load_configuration(builtins)


def _yaml_error(error: Exception) -> str:
    """The error and its position, without the text around it, which may contain secrets."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return str(error).partition(": '")[0]
    what = ", ".join(filter(None, (getattr(error, "context", ""), getattr(error, "problem", ""))))
    return f"{what}, line {mark.line + 1}, column {mark.column + 1}"


def _read_yaml(text: str) -> Any:
    """The document as lists, mappings and scalars.

    Raises:
        yaml.YAMLError: the text is not YAML, or its aliases expand to too many values.
        ValueError: a scalar is invalid, such as the date 2001-99-99.
        RecursionError: the document is nested too deeply.
    """
    loader = _StrictLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if _expanded_size(node, {}) > MAX_VALUES:
            raise yaml.YAMLError(f"its aliases expand to more than {MAX_VALUES:,} values")
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _expanded_size(node: yaml.Node, known: dict[int, int]) -> int:
    """Number of values after each alias is replaced by its anchor's value."""
    if isinstance(node, yaml.ScalarNode):
        node.value.encode()  # an escape may produce an invalid character
        return 1
    size = known.get(id(node))
    if size is None:
        known[id(node)] = _UNBOUNDED  # reached again only if the node contains itself
        parts = node.value
        if isinstance(node, yaml.MappingNode):
            parts = [each for pair in node.value for each in pair]
        size = known[id(node)] = min(
            _UNBOUNDED, 1 + sum(_expanded_size(each, known) for each in parts)
        )
    return size


class _StrictLoader(yaml.SafeLoader):
    """Strict YAML, as in Kubernetes: a duplicate field is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = str(self.construct_object(key_node))
            if key in seen:
                line = key_node.start_mark.line + 1
                raise yaml.YAMLError(f"{key} is set twice, again in line {line}")
            seen.add(key)
        return super().construct_mapping(node, deep)


def print_errors(console: Console, invalid: InvalidConfiguration) -> None:
    """Print all errors of a configuration, one per row."""
    columns = [Column(heading, overflow="fold") for heading in ("field", "is", "expected")]
    table = Table(*columns, title="configuration refused", title_justify="left")
    for error in invalid.errors:
        table.add_row(*map(escape, (error.path, error.shown_value, error.expectation)))
    console.print(table)
