"""A model of stored claims and volumes, with a controller that binds them late."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

from msgspec.structs import replace

from stowage.api.events import Event, StorageGone, StorageSeen, VolumesWritten
from stowage.api.instructions import BindVolumes, Instruction
from stowage.api.objects.volume import PersistentVolume, PersistentVolumeClaim, StorageObject
from stowage.api.values.volume_claims import BIND_COMPLETED, SELECTED_NODE
from tests.support.builders import HOSTNAME
from tests.support.volume_builders import affinity_to, make_volume


class GivenTwice(AssertionError):  # noqa: N818 - it names the finding
    """A volume was given to two claims, or a claim bound to two volumes."""


@dataclass
class ModelStorage:
    """Stored claims, volumes and other storage objects.

    Attributes:
        watch: Undelivered watch events.
        answers: Undelivered outcomes of writes.
        refusals: How many of the next writes are refused.
        failure_rate: The probability that provisioning fails on the selected node.
    """

    rng: Random
    claims: dict[str, PersistentVolumeClaim] = field(default_factory=dict)
    volumes: dict[str, PersistentVolume] = field(default_factory=dict)
    watch: list[Event] = field(default_factory=list)
    answers: list[Event] = field(default_factory=list)
    refusals: int = 0
    failure_rate: float = 0.3
    revision: int = 0

    def store(self, obj: StorageObject) -> str:
        """Create or change an object; return its resource version."""
        self.revision += 1
        version = str(self.revision)
        stored = replace(obj, metadata=replace(obj.metadata, resource_version=version))
        if isinstance(stored, PersistentVolumeClaim):
            self.claims[stored.metadata.name] = stored
        elif isinstance(stored, PersistentVolume):
            self.volumes[stored.metadata.name] = stored
        self.watch.append(StorageSeen(stored))
        return version

    def delete_claim(self, name: str) -> None:
        """Delete a claim; its volume does not change."""
        if self.claims.pop(name, None) is not None:
            self.watch.append(StorageGone("PersistentVolumeClaim", "default", name))

    def carry_out(self, instructions: Iterable[Instruction]) -> None:
        """Execute the instructions about storage."""
        for instruction in instructions:
            if isinstance(instruction, BindVolumes):
                self._write(instruction)

    def control(self) -> None:
        """Let the controller handle one claim: bind it, provision its volume, or fail."""
        if not self.claims:
            return
        claim = self.claims[self.rng.choice(sorted(self.claims))]
        meta = claim.metadata
        if claim.spec.volume_name:
            return
        given = [
            volume
            for volume in self.volumes.values()
            if volume.spec.claim_ref is not None and volume.spec.claim_ref.uid == meta.uid
        ]
        node_name = meta.annotations.get(SELECTED_NODE)
        if len(given) > 1:
            raise GivenTwice(f"claim {meta.name} has {[each.metadata.name for each in given]}")
        if given:
            self._bind(claim, given[0].metadata.name)
        elif node_name and self.rng.random() < self.failure_rate:
            self.store(replace(claim, metadata=replace(meta, annotations={})))
        elif node_name:
            made = make_volume(f"made-{meta.uid}", given_to=meta.name, given_uid=meta.uid)
            affinity = affinity_to(HOSTNAME, [node_name])
            self.store(replace(made, spec=replace(made.spec, node_affinity=affinity)))

    def take_watch(self) -> list[Event]:
        """Remove and return all watch events."""
        shown, self.watch = self.watch, []
        return shown

    def take_answers(self) -> list[Event]:
        """Remove and return all outcomes of writes."""
        answers, self.answers = self.answers, []
        return answers

    def _bind(self, claim: PersistentVolumeClaim, volume_name: str) -> None:
        meta = claim.metadata
        annotations = {**meta.annotations, BIND_COMPLETED: "yes"}
        spec = replace(claim.spec, volume_name=volume_name)
        self.store(replace(claim, metadata=replace(meta, annotations=annotations), spec=spec))

    def _write(self, instruction: BindVolumes) -> None:
        volumes: dict[str, str] = {}
        claims: dict[str, str] = {}
        error = ""
        for give in instruction.volumes:
            volume = self.volumes.get(give.name)
            if self._refuses(volume, give.resource_version) or volume is None:
                error = "conflict"
                break
            spec = replace(volume.spec, claim_ref=give.claim_ref)
            volumes[give.name] = self.store(replace(volume, spec=spec))
        for select in instruction.claims if not error else ():
            claim = self.claims.get(select.name)
            if self._refuses(claim, select.resource_version) or claim is None:
                error = "conflict"
                break
            annotations = {**claim.metadata.annotations, SELECTED_NODE: instruction.node_name}
            meta = replace(claim.metadata, annotations=annotations)
            claims[f"default/{select.name}"] = self.store(replace(claim, metadata=meta))
        self.answers.append(
            VolumesWritten(instruction.pod.uid, instruction.number, volumes, claims, error)
        )

    def _refuses(self, obj: PersistentVolume | PersistentVolumeClaim | None, version: str) -> bool:
        if self.refusals:
            self.refusals -= 1
            return True
        return obj is None or obj.metadata.resource_version != version
