"""Reads KubeSchedulerConfiguration files and prints their errors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.cyaml import CParser  # type: ignore[attr-defined]
from yaml.resolver import Resolver

from stowage.api.config.loading import (
    KIND,
    ConfigError,
    InvalidConfiguration,
    KubeSchedulerConfiguration,
    load_configuration,
)
from stowage.api.config.policy import is_policy

if TYPE_CHECKING:
    from rich.console import Console

STANDARD_INPUT = Path("-")
MAX_CHARACTERS = 2**20
MAX_VALUES = 500_000
_UNBOUNDED = 2 * MAX_VALUES
_MAX_ERROR_LENGTH = 500


class Document(NamedTuple):
    """A configuration as it is written.

    Attributes:
        builtins: The document as mappings, lists and scalars.
        root: The same with line numbers, for `line_of`.
    """

    builtins: Any
    root: yaml.Node


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
        expected = f"at most {MAX_CHARACTERS:,} characters, as a ConfigMap may hold"
        raise InvalidConfiguration([ConfigError(flag, source, expected)])
    try:
        document = _read_yaml(_without_tabs(text))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
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
        return str(error).partition(": '")[0]
    what = ", ".join(filter(None, (getattr(error, "context", ""), getattr(error, "problem", ""))))
    return f"{what}, line {mark.line + 1}, column {mark.column + 1}"


def _read_yaml(text: str) -> Document | None:
    """The document; None if the text has none.

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
        return Document(loader.construct_document(node), node)
    finally:
        loader.dispose()


def _expanded_size(node: yaml.Node, known: dict[int, int]) -> int:
    """Number of values after each alias is replaced by its anchor's value."""
    if isinstance(node, yaml.ScalarNode):
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


class _StrictLoader(Composer, CParser, SafeConstructor, Resolver):
    """Strict YAML, as in Kubernetes: a duplicate field is an error.

    libyaml reads the text, three times as fast as PyYAML. Its own composer would overflow the stack
    of a document that is nested deeply; the one in Python raises RecursionError.
    """

    def __init__(self, text: str) -> None:
        CParser.__init__(self, text)
        Composer.__init__(self)
        SafeConstructor.__init__(self)
        Resolver.__init__(self)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = str(self.construct_object(key_node))
            if key in seen:
                line = key_node.start_mark.line + 1
                raise yaml.YAMLError(f"{key} is set twice, again in line {line}")
            seen.add(key)
        return super().construct_mapping(node, deep)


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
