"""Writes the kubeconfig of a simulated cluster."""

import base64
from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]

_NAME = "stowage"


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
    """Write a kubeconfig readable by its owner only; returns its path."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.touch(mode=0o600)
    target.chmod(0o600)
    target.write_text(yaml.safe_dump(kubeconfig(url, token, ca_file), sort_keys=False))
    return target
