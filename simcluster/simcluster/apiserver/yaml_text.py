"""YAML as Kubernetes reads it: what JSON has no type for stays text, and all keys are texts."""

import json
from collections.abc import Iterator
from typing import Any

import yaml

from stowage.api.decoding.bounded_yaml import INVALID, BoundedLoader, documents

_TAG = "tag:yaml.org,2002:"


class _Loader(BoundedLoader):
    yaml_implicit_resolvers = {  # noqa: RUF012 - as yaml declares it
        first: [pair for pair in pairs if pair[0] != f"{_TAG}timestamp"]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    yaml_constructors = {  # noqa: RUF012 - as yaml declares it
        **yaml.SafeLoader.yaml_constructors,
        f"{_TAG}binary": lambda loader, node: loader.construct_text(node),
        f"{_TAG}set": yaml.SafeLoader.construct_yaml_map,
        f"{_TAG}omap": yaml.SafeLoader.construct_yaml_seq,
        f"{_TAG}pairs": yaml.SafeLoader.construct_yaml_seq,
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping; numbers and booleans among its keys become texts."""
        self.flatten_mapping(node)
        return {
            _key(self.construct_object(key, deep=True)): self.construct_object(value, deep=deep)
            for key, value in node.value
        }

    def construct_text(self, node: Any) -> str:
        """The text of a ``!!binary`` value."""
        return self.construct_yaml_binary(node).decode(errors="replace")


def _key(key: object) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int):
        return str(key)
    if isinstance(key, float):
        text = repr(key).removesuffix(".0")
        return text.replace("inf", ".inf").replace("nan", ".nan")
    raise yaml.YAMLError(f"unsupported map key {key!r}")


def load_yaml(text: str | bytes) -> object:
    """A YAML or JSON document; ``None`` for an empty text.

    Raises:
        yaml.YAMLError: it is neither, has several documents, is nested too deeply, or its aliases
            expand to too many values.
    """
    found = list(load_yaml_documents(text))
    if len(found) > 1:
        raise yaml.composer.ComposerError(None, None, "but found another document", None)
    return found[0] if found else None


def load_first_yaml(text: str | bytes) -> object:
    """The first document of a YAML or JSON text, as the API server reads bodies; ``None`` for none.

    Raises:
        yaml.YAMLError: it is neither, is nested too deeply, or its aliases expand to too many
            values.
    """
    return next(load_yaml_documents(text), None)


def load_yaml_documents(text: str | bytes) -> Iterator[object]:
    """The documents of a YAML stream.

    Raises:
        yaml.YAMLError: it is no YAML, is nested too deeply, or its aliases expand to too many
            values.
    """
    try:
        for document in documents(text, _Loader):
            yield document.builtins
    except RecursionError as error:
        raise yaml.YAMLError("exceeded max depth") from error
    except INVALID as error:
        if isinstance(error, yaml.YAMLError):
            raise
        raise yaml.YAMLError(str(error)) from error


def duplicate_keys(text: str | bytes) -> list[str]:
    """``line 5: key "name" already set in map`` for each duplicate key of the first document.

    Args:
        text: of a document that :func:`load_first_yaml` reads.
    """
    found: list[str] = []
    if (document := next(documents(text, _Loader), None)) is not None:
        _visit(document.root, found, set())
    return found


def _visit(node: yaml.Node, found: list[str], seen: set[int]) -> None:
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _visit(item, found, seen)
    elif isinstance(node, yaml.MappingNode):
        keys: set[tuple[str, str]] = set()
        for key, value in node.value:
            _visit(value, found, seen)
            if (key.tag, key.value) in keys:
                shown = json.dumps(key.value) if key.tag == f"{_TAG}str" else key.value
                found.append(f"line {value.start_mark.line + 1}: key {shown} already set in map")
            keys.add((key.tag, key.value))
