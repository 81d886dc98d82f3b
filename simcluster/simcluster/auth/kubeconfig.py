"""Writes the kubeconfig of a simulated cluster, beside what the file has of other clusters."""

import base64
import os
from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]

_NAME = "stowage"
_PARTS = ("clusters", "users", "contexts")


def kubeconfig(url: str, token: str = "", ca_file: str | Path | None = None) -> Json:
    """A kubeconfig of one cluster, one user and one context.

    Args:
        url: of the API server.
        token: bearer token; empty for none.
        ca_file: PEM file of the authority that signed the server's certificate.
    """
    cluster: Json = {"server": url}
    if ca_file is not None:
        authority = Path(ca_file).read_bytes()
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    user: Json = {"token": token} if token else {}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": cluster}],
        "users": [{"name": _NAME, "user": user}],
        "contexts": [
            {"name": _NAME, "context": {"cluster": _NAME, "user": _NAME, "namespace": "default"}}
        ],
        "current-context": _NAME,
    }


def write_kubeconfig(
    path: str | Path, url: str, token: str = "", ca_file: str | Path | None = None
) -> Path:
    """Write a kubeconfig readable by its owner only; returns its path.

    A file that exists keeps the clusters, users and contexts of other names; the current context
    becomes the simulated cluster's.

    Raises:
        ValueError: the file exists and is no kubeconfig.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump(
        _merged(read_kubeconfig(target), kubeconfig(url, token, ca_file)), sort_keys=False
    )
    # A link is followed, as kubectl does, and the file is replaced as a whole or not at all.
    file = target.resolve()
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    unfinished.touch(mode=0o600)
    unfinished.write_text(text)
    unfinished.replace(file)
    return target


def read_kubeconfig(path: Path) -> Json:
    """The kubeconfig in a file; empty if there is no such file, or nothing in it.

    Raises:
        ValueError: the file is no kubeconfig.
    """
    if not path.exists():
        return {}
    if not path.is_file():
        raise ValueError(f"{path} exists and is no file (expected a kubeconfig, or no file)")
    try:
        found = yaml.safe_load(path.read_text()) or {}
    except (yaml.YAMLError, UnicodeDecodeError):
        found = None
    if not isinstance(found, dict) or not all(_has_entries(found.get(part)) for part in _PARTS):
        raise ValueError(f"{path} exists and is no kubeconfig (expected one, or no file)")
    return found


def _has_entries(part: object) -> bool:
    return part is None or (isinstance(part, list) and all(isinstance(each, dict) for each in part))


def _merged(old: Json, new: Json) -> Json:
    """The old kubeconfig with the entries and the current context of the new one."""
    parts = {
        part: [each for each in old.get(part) or [] if each.get("name") != _NAME] + new[part]
        for part in _PARTS
    }
    return {**old, **new, **parts}
