"""Reads the workloads of ``stowage simulate``: workload files, objects beside them, recordings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.recorded_life import RecordedLife
from stowage.analysis.simulation.recorded import RecordedWorkload
from stowage.analysis.simulation.synthetic import SyntheticWorkload
from stowage.analysis.simulation.timeline import Workload
from stowage.analysis.simulation.workload_spec import KIND, decode_workload, is_workload
from stowage.analysis.workload_pods import objects_of_manifests
from stowage.api.config.loading import (
    ConfigError,
    InvalidConfiguration,
    load_configuration,
)
from stowage.api.decoding.bounded_yaml import INVALID, documents
from stowage.api.decoding.document_lines import line_of
from stowage.cli.ask.source import UnreadableObjects, read_items
from stowage.cli.profiles import make_frameworks
from stowage.engine import make_engine
from stowage.recording.frames import is_recording
from stowage.recording.reader import Recording, find_recording

_Documents = list[dict[str, Any]]


def read_workloads(files: Sequence[Path]) -> list[Workload]:
    """The workloads in files and recordings; other objects are there at the start of each.

    Raises:
        InvalidConfiguration: A workload file is invalid; the error names file, line and field.
        InvalidManifest: An object is invalid.
        UnreadableObjects: A file cannot be read, or there is no workload.
        UnreadableRecording: A recording is damaged.
        OSError: A recording cannot be read.
    """
    recordings = [each for each in files if each.is_dir() or is_recording(each)]
    documents = [(file, read_items(file)) for file in files if file not in recordings]
    others = [item for _, items in documents for item in items if not is_workload(item)]
    cluster = objects_of_manifests(others, ClusterObjects())
    workloads: list[Workload] = []
    for file, items in documents:
        workloads += _synthetic(file, [each for each in items if is_workload(each)], cluster)
    workloads += map(_recorded, recordings)
    if not workloads:
        text = ", ".join(map(str, files))
        raise UnreadableObjects(f"{text}: expected a recording, or an object of kind {KIND}")
    names = [each.name for each in workloads]
    for name in names:
        if names.count(name) > 1:
            error = ConfigError("metadata.name", name, "workloads with different names")
            raise InvalidConfiguration([error])
    return workloads


def _synthetic(
    file: Path, documents: _Documents, cluster: ClusterObjects
) -> Iterator[SyntheticWorkload]:
    for index, document in enumerate(documents):
        try:
            yield SyntheticWorkload(decode_workload(document), cluster)
        except InvalidConfiguration as invalid:
            place = _places(file, index)
            raise InvalidConfiguration(
                [
                    ConfigError(f"{place(each.path)}: {each.path}", each.value, each.expectation)
                    for each in invalid.errors
                ]
            ) from invalid


def _places(file: Path, index: int) -> Callable[[str], str]:
    """Makes ``FILE:LINE`` of a field of the workload with a number in its file."""
    try:
        written = [each.root for each in documents(file.read_bytes())]
    except (OSError, *INVALID):
        return lambda _path: str(file)  # read from standard input, or not as YAML
    roots = [each for each in written if is_workload(_top_level(each))]
    if index >= len(roots):
        return lambda _path: str(file)
    return lambda path: f"{file}:{line_of(roots[index], path)}"


def _top_level(root: yaml.Node) -> dict[str, str]:
    """The scalar fields of a document."""
    pairs = root.value if isinstance(root, yaml.MappingNode) else ()
    return {key.value: value.value for key, value in pairs if isinstance(value, yaml.ScalarNode)}


def _recorded(path: Path) -> RecordedWorkload:
    found = find_recording(path)
    with Recording(found) as recording:
        # The engine counts resources of nodes; the profiles do not matter.
        engine = make_engine(make_frameworks(load_configuration()), lambda _num_ties: 0)
        life = RecordedLife(engine, recording.header.time_of_day)
        for entry in recording.calls():
            life.add(entry)
    workload = RecordedWorkload(path.stem, life)
    with Recording(found) as recording:
        for entry in recording.calls():
            workload.add(entry)
    workload.finish()
    return workload
