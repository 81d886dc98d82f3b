"""Status codes of kube-scheduler, and the status that a plugin returns."""

from __future__ import annotations

from enum import IntEnum

import msgspec


class Code(IntEnum):
    """The result of a plugin; numbered as ``fwk.Code`` in k8s.io/kube-scheduler v1.36."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    @property
    def title(self) -> str:
        """The code's name as kube-scheduler prints it, e.g. ``UnschedulableAndUnresolvable``."""
        return _TITLES[self]


_TITLES = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}

REJECTIONS = frozenset({Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING})


class Status(msgspec.Struct, frozen=True):
    """The result of a plugin.

    Attributes:
        code: The code.
        reasons: The reasons; those of in-tree plugins are byte-identical to kube-scheduler's.
        plugin: The plugin; empty until the framework sets it.
    """

    code: Code = Code.SUCCESS
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def is_success(self) -> bool:
        """Whether the code is Success."""
        return self.code is Code.SUCCESS

    @property
    def is_skip(self) -> bool:
        """Whether the code is Skip: the plugin does not apply to this pod."""
        return self.code is Code.SKIP

    @property
    def is_rejected(self) -> bool:
        """Whether the plugin rejected the pod (as opposed to an error)."""
        return self.code in REJECTIONS

    @property
    def message(self) -> str:
        """The reasons joined as kube-scheduler's ``Status.Message`` does."""
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> Status:
        """The same status with `plugin`, unless it names a plugin already."""
        return self if self.plugin else Status(self.code, self.reasons, plugin)


SUCCESS = Status()
SKIP = Status(Code.SKIP)
WAIT = Status(Code.WAIT)


def unschedulable(*reasons: str, plugin: str = "") -> Status:
    """A rejection that preemption may resolve."""
    return Status(Code.UNSCHEDULABLE, reasons, plugin)


def unresolvable(*reasons: str, plugin: str = "") -> Status:
    """A rejection that preemption cannot resolve."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons, plugin)


def error(*reasons: str, plugin: str = "") -> Status:
    """A failure of the plugin itself."""
    return Status(Code.ERROR, reasons, plugin)
