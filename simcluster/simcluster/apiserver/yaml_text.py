"""YAML as Kubernetes reads it: timestamps stay text, because JSON has no other type for them."""

from collections.abc import Iterator

import yaml

_LoaderType = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TIMESTAMP = "tag:yaml.org,2002:timestamp"


class _Loader(_LoaderType):  # type: ignore[misc, valid-type]
    yaml_implicit_resolvers = {  # noqa: RUF012 - as yaml declares it
        first: [pair for pair in pairs if pair[0] != _TIMESTAMP]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def load_yaml(text: str | bytes) -> object:
    """A YAML or JSON document.

    Raises:
        yaml.YAMLError: it is neither.
    """
    loaded: object = yaml.load(text, _Loader)  # noqa: S506 - a safe loader's subclass
    return loaded


def load_yaml_documents(text: str | bytes) -> Iterator[object]:
    """The documents of a YAML stream.

    Raises:
        yaml.YAMLError: it is no YAML.
    """
    yield from yaml.load_all(text, _Loader)
