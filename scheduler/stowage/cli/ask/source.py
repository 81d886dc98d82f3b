"""The cluster that a question is about: a running one, or objects in files."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import msgspec
import typer
from kubernetes.aio.config import ConfigException
from rich.console import Console
from rich.markup import escape

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.compact import CompactAnswer
from stowage.analysis.explain_pod import NotInCluster
from stowage.analysis.explanation import IN_FILES
from stowage.analysis.generated_claims import default_requests
from stowage.analysis.loaded_cluster import LoadedCluster, load_cluster
from stowage.analysis.manifest_identity import with_identity
from stowage.analysis.workload_pods import InvalidManifest
from stowage.api.config.feature_gates import parse_feature_gates
from stowage.api.config.loading import (
    ConfigError,
    InvalidConfiguration,
    KubeSchedulerConfiguration,
)
from stowage.api.config.types import KIND
from stowage.api.decoding.bounded_yaml import INVALID, documents
from stowage.api.decoding.errors import InvalidObject
from stowage.api.decoding.nesting import problem_of
from stowage.cli.ask.decision_source import UnreadableDecisions
from stowage.cli.ask.flags import ClusterFlags
from stowage.cli.ask.recorded_objects import read_recorded
from stowage.cli.config_file import parse_configuration, print_errors, read_configuration
from stowage.cli.coroutines import run_coroutine
from stowage.cli.failures import os_error_text, print_error
from stowage.cli.imports import garbage_collection_paused
from stowage.cli.plugin_discovery import discover_plugins
from stowage.cli.profiles import make_frameworks
from stowage.framework import Framework
from stowage.operator.client.api_client import LOST_ANSWER_ERRORS
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.cluster_lists import read_cluster
from stowage.operator.configuration.config_map import parse_reference, read_config_map
from stowage.recording.frames import RECORDING_START, UnreadableRecording

_NO_NODES = "there are no nodes in the files: kubectl get nodes,pods -A -o json prints both"
_WITH_REQUESTS = frozenset({"ResourceClaim", "ResourceClaimTemplate"})


class UnreadableObjects(Exception):  # noqa: N818 - it names the finding
    """A file holds no Kubernetes objects; the message names file and place."""


class ClusterContents(msgspec.Struct):
    """The objects of a cluster, and the profiles that decide.

    Attributes:
        loaded: The cluster as an engine sees it, once it was asked for.
        as_of: What the objects are of, if they are not of a cluster as it is now.
        wall_clock: Returns the seconds since the epoch; for a recording, the time of the objects.
        compacted: The answer of compact, once it was asked for.
    """

    objects: ClusterObjects
    frameworks: list[Framework]
    loaded: LoadedCluster | None = None
    as_of: str = ""
    wall_clock: Callable[[], float] = time.time
    compacted: CompactAnswer | None = None

    def load(self, console: Console, scheduler_names: Collection[str] = ()) -> LoadedCluster:
        """Show the objects to an engine; those that it cannot use are printed.

        Args:
            console: For the notes.
            scheduler_names: The scheduler names of pods that are created later.
        """
        loaded = self.loaded
        if loaded is None or not loaded.engine.state.frameworks.keys() >= set(scheduler_names):
            with garbage_collection_paused():
                loaded = load_cluster(
                    self.objects,
                    self.frameworks,
                    wall_clock=self.wall_clock,
                    scheduler_names=scheduler_names,
                )
            _print_notes(console, loaded.problems)
            self.loaded = loaded
        return loaded

    @property
    def has_groups(self) -> bool:
        """Whether the feature gates let members of pod groups be tried together."""
        return self.frameworks[0].gates.set_to("GenericWorkload") is not False

    def with_frameworks(self, frameworks: list[Framework]) -> ClusterContents:
        """The same objects with other profiles."""
        return ClusterContents(
            self.objects, frameworks, as_of=self.as_of, wall_clock=self.wall_clock
        )


def _print_notes(console: Console, notes: Iterable[str]) -> None:
    for note in notes:
        console.print(f"[yellow]note:[/yellow] {escape(note)}", soft_wrap=True)


_KEPT: ContextVar[ClusterContents | None] = ContextVar("_KEPT", default=None)


@contextmanager
def kept(contents: ClusterContents) -> Iterator[None]:
    """Let all questions be about these contents instead of reading the cluster again."""
    token = _KEPT.set(contents)
    try:
        yield
    finally:
        _KEPT.reset(token)


def read_contents(flags: ClusterFlags, console: Console) -> ClusterContents:
    """Read the cluster; what had to be left out is printed.

    Raises:
        UnreadableObjects: A file cannot be read.
        UnreadableRecording: A recording is damaged, or is not alone.
        NotInCluster: The recording does not have the pod of ``--until``.
        InvalidConfiguration: The profiles are invalid.
        ApiError: The API server refuses.
        ConfigException: There is no usable kubeconfig.
        OSError: The API server cannot be reached.
        typer.BadParameter: The flags name a cluster, and the contents are `kept` ones.
    """
    contents = _KEPT.get()
    if contents is not None:
        given = flags.given()
        if given:
            names = ", ".join(given)
            raise typer.BadParameter(f"{names}: only after stowage shell, which reads the cluster")
        return contents
    gates = parse_feature_gates(flags.feature_gates or ())
    recorded = read_recorded(flags)
    if recorded is not None:
        configuration = recorded.configuration if flags.config is None else read_profiles(flags)
        gates = gates if flags.feature_gates else recorded.gates
        frameworks = make_frameworks(configuration, discover_plugins(gates=gates))
        _print_notes(console, [recorded.as_of])
        unix_s = recorded.unix_s
        return ClusterContents(
            recorded.objects, frameworks, as_of=recorded.as_of, wall_clock=lambda: unix_s
        )
    configuration = read_profiles(flags)
    frameworks = make_frameworks(configuration, discover_plugins(gates=gates))
    objects, notes = _read(flags)
    _print_notes(console, notes)
    return ClusterContents(objects, frameworks, as_of=IN_FILES if flags.files else "")


def read_profiles(flags: ClusterFlags) -> KubeSchedulerConfiguration:
    """The configuration that answers.

    Raises:
        InvalidConfiguration: The configuration is invalid.
        ApiError: The API server refuses to show the ConfigMap.
        ConfigException: There is no usable kubeconfig.
        OSError: The API server cannot be reached.
    """
    if flags.configmap is None:
        return read_configuration(flags.config)
    if flags.config is not None:
        expected = "no --config, because both set the profiles"
        raise InvalidConfiguration([ConfigError("--configmap", flags.configmap, expected)])
    path = str(flags.kubeconfig) if flags.kubeconfig else None
    text = read_config_map(parse_reference(flags.configmap), path, context=flags.context)
    return parse_configuration(text, "--configmap", flags.configmap)


def _read(flags: ClusterFlags) -> tuple[ClusterObjects, list[str]]:
    with garbage_collection_paused():
        if flags.files:
            objects = read_files(flags.files)
            return objects, [] if objects.counts().get("Node") else [_NO_NODES]
        path = str(flags.kubeconfig) if flags.kubeconfig else None
        return run_coroutine(read_cluster(path, flags.context))


def read_files(files: Sequence[Path]) -> ClusterObjects:
    """The objects of files; of two with one name the later counts.

    Objects of manifests get a namespace and a UID, and their claims of devices defaults, as from
    the API server.

    Raises:
        UnreadableObjects: A file cannot be read, or holds something else.
    """
    items = (with_identity(item) for file in files for item in read_items(file))
    return ClusterObjects.of(
        default_requests(dict(item)) if item["kind"] in _WITH_REQUESTS else item for item in items
    )


def read_items(file: Path) -> list[dict[str, Any]]:
    """The objects in a file of JSON or YAML documents, lists unfolded.

    Raises:
        UnreadableObjects: The file cannot be read, or holds something else.
    """
    name = "standard input" if str(file) == "-" else str(file)
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        if data.startswith(RECORDING_START):
            raise UnreadableObjects(
                f"{name}: expected objects; name the file of a recording after --from"
            )
        documents = _documents(data)
    except OSError as error:
        raise UnreadableObjects(f"{name}: {error.strerror or error}") from error
    except INVALID as error:
        text = " ".join(problem_of(error).split())
        raise UnreadableObjects(f"{name}: expected JSON or YAML; {text}") from error
    if not documents:
        raise UnreadableObjects(f"{name}: expected objects; it has none")
    items: list[dict[str, Any]] = []
    for number, document in enumerate(documents, 1):
        items += _unfolded(document, f"{name}, document {number}")
    return items


def _documents(data: bytes) -> list[Any]:
    try:
        return [msgspec.json.decode(data)]
    except msgspec.DecodeError:
        return [each.builtins for each in documents(data) if each.builtins is not None]


def _unfolded(document: Any, place: str) -> list[dict[str, Any]]:
    """The objects of a document: one, a plain list of them, or a Kubernetes list."""
    if isinstance(document, dict) and isinstance(document.get("items"), list):
        kind = str(document.get("kind", "")).removesuffix("List")
        named = {"kind": kind} if kind else {}
        document = [named | each if isinstance(each, dict) else each for each in document["items"]]
    found = document if isinstance(document, list) else [document]
    for number, each in enumerate(found, 1):
        if not isinstance(each, dict) or not isinstance(each.get("kind"), str):
            raise UnreadableObjects(
                f"{place}, object {number}: expected an object with a kind, as "
                "kubectl get -o json or -o yaml prints it"
            )
        if each["kind"] == KIND:
            raise UnreadableObjects(
                f"{place}: expected objects of a cluster; --config takes a {KIND}"
            )
    return found


@contextmanager
def failures_reported(console: Console) -> Iterator[None]:
    """Print why a question cannot be answered, and exit with 1."""
    try:
        yield
    except InvalidConfiguration as invalid:
        print_errors(console, invalid)
        raise typer.Exit(1) from invalid
    except InvalidObject as invalid:
        text = f"the server does not answer as an API server does: {invalid}"
        print_error(console, text)
        raise typer.Exit(1) from invalid
    except (
        NotInCluster,
        InvalidManifest,
        UnreadableObjects,
        UnreadableRecording,
        UnreadableDecisions,
        ConfigException,
    ) as error:
        print_error(console, error)
        raise typer.Exit(1) from error
    except BrokenPipeError:
        raise  # the reader of the answer, such as head, has enough
    except (ApiError, *LOST_ANSWER_ERRORS) as error:
        text = os_error_text(error) if isinstance(error, OSError) else str(error)
        text = text or "the API server does not answer"
        print_error(console, text)
        raise typer.Exit(1) from error
