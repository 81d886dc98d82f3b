"""The flags of ``stowage cluster``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from stowage.cli.flag_groups import FlagGroup, Panel

_STATE = Panel("State")
_ACCESS = Panel("TLS and access")
_PARTS = Panel("Kubelets and controllers")
_LIMITS = Panel("Limits")


class Shape(StrEnum):
    """The shape of the nodes."""

    DEMO = "demo"
    BENCH = "bench"


class NodeFlags(FlagGroup, frozen=True):
    """The flags about the nodes at the start."""

    nodes: Annotated[
        int | None,
        typer.Option(
            min=0,
            show_default="100, or 0 with --from or --node-file",
            help="Number of nodes at the start.",
        ),
    ] = None
    shape: Annotated[
        Shape,
        typer.Option(
            help="demo: 3 zones, 2 sizes, some nodes tainted, some with SSDs or GPUs. "
            "bench: equal nodes of 4 CPUs, 32Gi and 110 pods in 10 zones."
        ),
    ] = Shape.DEMO
    node_file: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            metavar="FILE",
            help="Nodes as a YAML list of groups: count, name, zones, labels, taints, capacity, "
            "images, devices, how long pods take to start, how many fail, when the node stops; see "
            "docs/reference/simulated-cluster.md.",
        ),
    ] = None


class StateFlags(FlagGroup, frozen=True):
    """The flags about the objects at the start and at the end."""

    files: Annotated[
        list[Path] | None,
        _STATE.file(
            "--from",
            help="Start from the output of kubectl get ... -A -o json (or yaml), or from a saved "
            "cluster; may be given several times.",
        ),
    ] = None
    strict_from: Annotated[
        bool,
        _STATE.option(
            "--strict-from",
            help="Refuse kinds that are not served here instead of leaving them out.",
        ),
    ] = False
    save: Annotated[
        Path | None,
        _STATE.option(
            dir_okay=False,
            metavar="FILE",
            help="Write all objects to this file at the end and on SIGUSR1; --from reads it. A "
            "file that exists is refused, unless --from names it, too.",
        ),
    ] = None
    force: Annotated[bool, _STATE.option("--force", help="Let --save overwrite a file.")] = False

    def check(self) -> None:
        """Refuse a file that cannot be written at the end, or would be overwritten.

        Raises:
            ValueError: It is such a file.
        """
        if self.save is None:
            return
        if not self.save.absolute().parent.is_dir():
            raise ValueError(f"--save: {self.save.parent} (expected a folder)")
        may_overwrite = self.force or self.save in (self.files or ())
        if self.save.exists() and not may_overwrite:
            raise ValueError(f"--save: {self.save} exists (expected a new file, or --force)")


class AddressFlags(FlagGroup, frozen=True):
    """The flags about the address of the API server."""

    listen: Annotated[
        str,
        typer.Option(metavar="HOST:PORT", help="Address to listen on; port 0 takes a free port."),
    ] = "127.0.0.1:8001"
    write_kubeconfig: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a kubeconfig to this file once the cluster answers. In a file that exists, "
            "only the cluster, user and context named stowage are set, and the current context.",
        ),
    ] = None


class AccessFlags(FlagGroup, frozen=True):
    """The flags about certificates and users."""

    token: Annotated[
        str,
        _ACCESS.option(
            help="Bearer token that requests must carry; empty lets everyone in who carries none. "
            "kubectl sends it over TLS only."
        ),
    ] = ""
    token_auth_file: Annotated[
        Path | None,
        _ACCESS.file(
            help='More users, a line each: token,user,uid,"group1,group2", as kube-apiserver reads '
            "it.",
        ),
    ] = None
    rbac: Annotated[
        bool,
        _ACCESS.option(
            "--rbac",
            help="Authorize those users by Roles and ClusterRoles; needs --token, whose bearer may "
            "do everything.",
        ),
    ] = False
    tls_cert_file: Annotated[
        Path | None,
        _ACCESS.option(
            metavar="FILE", help="PEM certificate; given with its key, HTTPS is served."
        ),
    ] = None
    tls_private_key_file: Annotated[
        Path | None, _ACCESS.option(metavar="FILE", help="PEM key.")
    ] = None


class PartFlags(FlagGroup, frozen=True):
    """The flags about kubelets, controllers and what the API server serves."""

    kubelet: Annotated[
        bool, _PARTS.option("--kubelet/--no-kubelet", help="Run pods that are bound.")
    ] = True
    controllers: Annotated[
        bool,
        _PARTS.option(
            "--controllers/--no-controllers",
            help="Create the pods of Deployments, Jobs and the like, bind volumes, taint nodes.",
        ),
    ] = True
    service_accounts: Annotated[
        bool,
        _PARTS.option(
            "--service-accounts",
            help="Give every namespace its ServiceAccount default and ConfigMap kube-root-ca.crt, "
            "and every new pod its ServiceAccount and a volume with a token.",
        ),
    ] = False
    pod_start_seconds: Annotated[
        float, _PARTS.option(min=0, help="Seconds a pod takes to start.")
    ] = 0.0
    job_run_seconds: Annotated[float, _PARTS.option(min=0, help="Seconds a Job's pod runs.")] = 2.0
    node_grace_seconds: Annotated[
        float,
        _PARTS.option(min=0, help="Seconds that a node may be silent before it is Unknown."),
    ] = 50.0
    feature_gates: Annotated[
        list[str] | None,
        _PARTS.option(
            metavar="NAME=BOOL,...",
            help="Feature gates, in kube-apiserver's syntax. GenericWorkload serves Workloads and "
            "PodGroups; TopologyAwareWorkloadScheduling, WorkloadAwarePreemption and "
            "DRAWorkloadResourceClaims add fields. No other gate has an effect.",
        ),
    ] = None
    runtime_config: Annotated[
        list[str] | None,
        _PARTS.option(
            metavar="VERSION=BOOL,...",
            help="Versions to serve, in kube-apiserver's syntax; GenericWorkload needs "
            "scheduling.k8s.io/v1alpha2=true.",
        ),
    ] = None


class LimitFlags(FlagGroup, frozen=True):
    """The flags about the limits of the API server, and its faults."""

    watch_history: Annotated[
        int,
        _LIMITS.option(
            min=1,
            help="Changes kept per resource; a watch or page from before them is answered 410.",
        ),
    ] = 10_000
    max_connections: Annotated[
        int,
        _LIMITS.option(min=1, help="Requests on connections beyond these are answered 429."),
    ] = 4096
    max_requests: Annotated[
        int,
        _LIMITS.option(
            "--max-requests-inflight",
            min=1,
            help="Requests beyond these, watches aside, are answered 429.",
        ),
    ] = 600
    bookmarks: Annotated[
        bool,
        _LIMITS.option(
            "--bookmarks/--no-bookmarks",
            help="Send bookmarks on watches; a real API server may send none for 10 minutes.",
        ),
    ] = True
    faults: Annotated[
        bool,
        _LIMITS.option(
            "--faults",
            help="Let POST /stowage/faults make requests fail: JSON with method, path, rate, "
            "status and more (see simcluster/simcluster/faults/faults.py).",
        ),
    ] = False
