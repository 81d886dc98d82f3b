"""Names of objects on the command line: ``NAMESPACE/NAME``, and ``TYPE/NAME`` as for kubectl."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import typer

POD = "pod"
NODE = "node"
GROUP = "group"

_NAMES: Mapping[str, str] = {
    **dict.fromkeys(("pod", "pods", "po"), POD),
    **dict.fromkeys(("node", "nodes", "no"), NODE),
    **dict.fromkeys(("group", "groups", "podgroup", "podgroups", "pg"), GROUP),
}


def kind_of(word: str) -> str | None:
    """The kind that a word of kubectl names, e.g. ``po``; None for another word."""
    return _NAMES.get(word.lower())


def pod_key(text: str, namespace: str = "default") -> str:
    """``namespace/name`` of a pod: of ``[NAMESPACE/]NAME``, or of ``TYPE/[NAMESPACE/]NAME``.

    A first word that names pods is a type: a pod of a namespace ``pod`` is ``pod/pod/NAME``.

    Raises:
        typer.BadParameter: The text is none of them.
    """
    return _namespaced(text, POD, namespace)


def pod_text(text: str) -> str:
    """``[namespace/]name`` of a pod of any namespace, or of the named one, as `pod_key`."""
    return "/".join(_parts(text, POD))


def group_key(text: str, namespace: str = "default") -> str:
    """``namespace/name`` of a pod group, as `pod_key`."""
    return _namespaced(text, GROUP, namespace)


def node_name(text: str) -> str:
    """The name of a node: of ``NAME`` or of ``node/NAME``.

    Raises:
        typer.BadParameter: The text is none of them.
    """
    parts = _without_type(text, NODE)
    if len(parts) != 1 or not all(parts):
        raise typer.BadParameter(f"{text!r} (expected NAME or node/NAME)")
    return parts[0]


def node_names(texts: Sequence[str]) -> list[str]:
    """The names of nodes, as `node_name`."""
    return [node_name(each) for each in texts]


def _namespaced(text: str, kind: str, namespace: str) -> str:
    parts = _parts(text, kind)
    return "/".join(parts if len(parts) == 2 else (namespace, *parts))


def _parts(text: str, kind: str) -> list[str]:
    """The name, or the namespace and the name.

    Raises:
        typer.BadParameter: The text is neither.
    """
    parts = _without_type(text, kind)
    if len(parts) > 2 or not all(parts):
        raise typer.BadParameter(
            f"{text!r} (expected [NAMESPACE/]NAME, or {kind}/NAME with --namespace)"
        )
    return parts


def _without_type(text: str, kind: str) -> list[str]:
    parts = text.split("/")
    return parts[1:] if len(parts) > 1 and kind_of(parts[0]) == kind else parts
