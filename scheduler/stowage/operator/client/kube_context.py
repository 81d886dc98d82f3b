"""What a kubeconfig says about itself: its context, and whether it is one at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from kubernetes.aio import config as kubernetes_config_module

# The package has no type annotations inside: strict checking would refuse every call.
kubernetes_config: Any = kubernetes_config_module

IN_CLUSTER = "in-cluster"
_LISTS = ("clusters", "contexts", "users")


def context_name(kubeconfig: Path | None) -> str:
    """The current context of a kubeconfig; None for kubectl's default ones.

    Without any kubeconfig it is `IN_CLUSTER`; with one that cannot be read the name of the file:
    whoever connects says what is wrong with it.
    """
    paths = kubernetes_config.KUBE_CONFIG_DEFAULT_LOCATION if kubeconfig is None else kubeconfig
    names = [each for each in str(paths).split(":") if Path(each).expanduser().is_file()]
    if kubeconfig is None and not names:
        return IN_CLUSTER
    try:
        _, current = kubernetes_config.list_kube_config_contexts(str(paths))
    except (
        kubernetes_config.ConfigException,
        OSError,
        yaml.YAMLError,
        AttributeError,
        TypeError,
        UnicodeDecodeError,
    ):
        return Path(names[0]).name if names else str(paths)
    return str(current["name"])


def misshapen_part(paths: str) -> str:
    """What is no kubeconfig in these files, for which the library has no words of its own.

    Args:
        paths: The files, with ``:`` between them.

    Returns:
        The file or field, and what was expected; empty if each has the shape of a kubeconfig, or
        cannot be read as YAML.
    """
    names = [each for each in paths.split(":") if Path(each).expanduser().is_file()]
    for name in names:
        try:
            document = yaml.safe_load(Path(name).expanduser().read_bytes())
        except (OSError, yaml.YAMLError, ValueError):
            continue
        problem = _problem_of(document)
        if problem:
            return problem if len(names) == 1 else f"{name}: {problem}"
    return ""


def _problem_of(document: object) -> str:
    expected = f"expected a mapping with {', '.join(_LISTS)} and current-context"
    if document is None:
        return f"it is empty ({expected})"
    if not isinstance(document, dict):
        return f"it is of type {type(document).__name__} ({expected})"
    for field in _LISTS:
        found = document.get(field, [])
        if not isinstance(found, list):
            return f"{field} is of type {type(found).__name__} (expected a list)"
    return ""
