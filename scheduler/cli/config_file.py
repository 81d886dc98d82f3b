"""KubeSchedulerConfiguration files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from scheduler.api.config import (
    ConfigError,
    InvalidConfiguration,
    KubeSchedulerConfiguration,
    load_configuration,
)


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
    try:
        builtins = _StrictLoader(text).get_single_data()
    except yaml.YAMLError as error:
        one_line = " ".join(_yaml_problem(error).split())
        raise InvalidConfiguration(
            [ConfigError(flag, source, f"a YAML document; {one_line}")]
        ) from error
    if builtins is None:
        raise InvalidConfiguration(
            [ConfigError(flag, source, "a KubeSchedulerConfiguration; it is empty")]
        )
    return load_configuration(builtins)


def _yaml_problem(error: yaml.YAMLError) -> str:
    """What is wrong and where; the text itself, which may hold secrets, is not shown."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return str(error)
    what = ", ".join(filter(None, (getattr(error, "context", ""), getattr(error, "problem", ""))))
    return f"{what}, line {mark.line + 1}, column {mark.column + 1}"


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


def print_mistakes(console: Console, invalid: InvalidConfiguration) -> None:
    """Show all mistakes of a configuration, one a row."""
    columns = [Column(heading, overflow="fold") for heading in ("field", "is", "expected")]
    table = Table(*columns, title="configuration refused", title_justify="left")
    for error in invalid.errors:
        table.add_row(*map(escape, (error.path, error.shown_value, error.expectation)))
    console.print(table)
