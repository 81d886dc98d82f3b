"""Claims for devices according to the history: no device is in two of them at once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from stowage_benchmarks.chaos.history import ClaimChange


@dataclass(slots=True)
class ClaimLedger:
    """The claims that exist, and who has which device.

    Attributes:
        by_uid: The last state of each claim.
        holders: Device -> the names of the claims that have it, by UID.
    """

    by_uid: dict[str, ClaimChange] = field(default_factory=dict)
    holders: dict[str, dict[str, str]] = field(default_factory=dict)

    def serves(self, pod_uid: str) -> bool:
        """Whether a claim with devices is reserved for a pod."""
        return any(pod_uid in each.reserved_for and each.devices for each in self.by_uid.values())

    def take(self, line: ClaimChange, counts: Counter[str], violations: list[str]) -> None:
        """Process a change of a claim: count it, and add what it violates."""
        before = self.by_uid.pop(line.uid, None)
        had = () if before is None else before.devices
        has = () if line.change == "DELETED" else line.devices
        if line.change != "DELETED":
            self.by_uid[line.uid] = line
        counts["claims made"] += before is None
        counts["claims allocated"] += bool(has and not had)
        counts["claims deallocated"] += bool(had and not has)
        for device in had:
            if device not in has:
                self.holders[device].pop(line.uid, None)
        for device in has:
            holders = self.holders.setdefault(device, {})
            if line.uid not in holders and holders:
                others = " and ".join(sorted(holders.values()))
                violations.append(f"device {device} is in claim {line.name} and in {others}")
            holders[line.uid] = line.name
