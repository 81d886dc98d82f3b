"""KubeSchedulerConfiguration files."""

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
_ENDLESS = 2 * MAX_VALUES
_MAX_COMPLAINT = 500


def read_configuration(path: Path | None) -> KubeSchedulerConfiguration:
    """Load a file; without one, the defaults.

    Raises:
        InvalidConfiguration: the file cannot be read, is no YAML, or says something wrong.
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
        flag: That named its source, for the errors.
        source: Where it comes from, for the errors.

    Raises:
        InvalidConfiguration: the text is no YAML, or says something wrong.
    """
    if len(text) > MAX_CHARACTERS:
        expected = f"at most {MAX_CHARACTERS:,} characters, as a ConfigMap may hold"
        raise InvalidConfiguration([ConfigError(flag, source, expected)])
    try:
        builtins = _read_yaml(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        one_line = " ".join(_yaml_problem(error).split())[:_MAX_COMPLAINT]
        raise InvalidConfiguration(
            [ConfigError(flag, source, f"a YAML document; {one_line}")]
        ) from error
    if builtins is None:
        raise InvalidConfiguration(
            [ConfigError(flag, source, "a KubeSchedulerConfiguration; it is empty")]
        )
    return load_configuration(builtins)


def _yaml_problem(error: Exception) -> str:
    """What is wrong and where; the text itself, which may hold secrets, is not shown."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return str(error).partition(": '")[0]
    what = ", ".join(filter(None, (getattr(error, "context", ""), getattr(error, "problem", ""))))
    return f"{what}, line {mark.line + 1}, column {mark.column + 1}"


def _read_yaml(text: str) -> Any:
    """The document as lists, mappings and scalars.

    Raises:
        yaml.YAMLError: It is none, or aliases make it endless or far larger than it looks.
        ValueError: A scalar is not what it looks like, such as the date 2001-99-99.
        RecursionError: It is nested too deep.
    """
    loader = _StrictLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if _unfolded_size(node, {}) > MAX_VALUES:
            raise yaml.YAMLError(f"its aliases unfold to more than {MAX_VALUES:,} values")
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _unfolded_size(node: yaml.Node, known: dict[int, int]) -> int:
    """How many values there are once each alias is replaced by what it stands for."""
    if isinstance(node, yaml.ScalarNode):
        node.value.encode()  # an escape can say what is no character
        return 1
    size = known.get(id(node))
    if size is None:
        known[id(node)] = _ENDLESS  # whoever gets back here contains itself
        parts = node.value
        if isinstance(node, yaml.MappingNode):
            parts = [each for pair in node.value for each in pair]
        size = known[id(node)] = min(
            _ENDLESS, 1 + sum(_unfolded_size(each, known) for each in parts)
        )
    return size


class _StrictLoader(yaml.SafeLoader):
    """YAML as Kubernetes reads it strictly: a field that is set twice is a mistake."""

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
    """Show all mistakes of a configuration, one a row."""
    columns = [Column(heading, overflow="fold") for heading in ("field", "is", "expected")]
    table = Table(*columns, title="configuration refused", title_justify="left")
    for error in invalid.errors:
        table.add_row(*map(escape, (error.path, error.shown_value, error.expectation)))
    console.print(table)
