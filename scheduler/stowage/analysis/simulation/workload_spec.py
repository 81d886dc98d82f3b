"""The ``Workload`` file: nodes and pods over time, from distributions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import msgspec

from stowage.analysis.simulation.distributions import (
    Distribution,
    decode_distribution,
    plain_number,
)
from stowage.api.config.errors import ConfigError, InvalidConfiguration
from stowage.api.decoding.errors import QuantityError
from stowage.api.decoding.strict_decoding import decode_struct
from stowage.api.values.duration import Duration, parse_duration
from stowage.api.values.quantity import quantity_milli_value, quantity_value
from stowage.api.values.resource_names import CPU

KIND = "Workload"
API_VERSION = "stowage.dev/v1alpha1"
MAX_NODES = 100_000
MAX_DEVICES = 128
"""Devices of one slice; the API server takes no more."""

Json = dict[str, Any]


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    """Base of the parts of a workload file; absent fields take their default."""


class Failures(_Spec, frozen=True):
    """When nodes fail.

    Attributes:
        after: Distribution of the time that a node runs; its pods are gone then.
        repair: Distribution of the time until it is back, empty.
    """

    after: Any = None
    repair: Any = None


class NodeDevices(_Spec, frozen=True):
    """Devices of one driver that are alike, on each node of a group.

    Attributes:
        driver: The name of the driver.
        name: The devices are called ``NAME-0``, ``NAME-1`` and so on.
        count: Number of devices of a node.
        attributes: Name -> text, number, boolean, or ``{version: 1.2.3}``.
        capacity: Name -> quantity.
    """

    driver: str = ""
    name: str = "device"
    count: int = 1
    attributes: dict[str, Any] = msgspec.field(default_factory=dict)
    capacity: dict[str, Any] = msgspec.field(default_factory=dict)


class NodeGroup(_Spec, frozen=True):
    """Nodes that are alike.

    Attributes:
        name: The nodes are called ``NAME-0``, ``NAME-1`` and so on.
        count: Number of nodes.
        template: A Node of Kubernetes: ``metadata.labels``, ``spec``, ``status.allocatable``.
        zones: Values of the label ``topology.kubernetes.io/zone``, in turn.
        from_: When they join.
        until: When they leave; never if it is absent.
        failures: When they fail; never if it is absent.
        devices: Devices that each of them offers to resource claims.
    """

    name: str = ""
    count: int = 1
    template: Any = None
    zones: tuple[str, ...] = ()
    from_: Duration = msgspec.field(default=Duration(0), name="from")
    until: Duration | None = None
    failures: Failures | None = None
    devices: tuple[NodeDevices, ...] = ()


class Arrivals(_Spec, frozen=True):
    """When pods arrive: ``perSecond``, or ``every`` with ``size``.

    Attributes:
        process: ``poisson``, ``constant`` or ``bursts``.
        per_second: Mean number of pods a second; of ``poisson`` and ``constant``.
        every: Time between two bursts.
        size: Distribution of the number of pods of a burst.
    """

    process: str = "poisson"
    per_second: float = 0.0
    every: Duration | None = None
    size: Any = None


class Gangs(_Spec, frozen=True):
    """Pods arrive in groups, and a group runs together or not at all.

    Attributes:
        size: Distribution of the number of pods of a group.
        min_count: Fewest pods of a group that may run; all of them if it is absent, or if the group
            is smaller.
        template: A PodGroup of Kubernetes: ``spec.schedulingConstraints``, ``spec.disruptionMode``,
            ``spec.priorityClassName``.
    """

    size: Any = None
    min_count: int | None = None
    template: Any = None


class PodSource(_Spec, frozen=True):
    """Pods that are alike.

    Attributes:
        name: The pods are called ``NAME-0``, ``NAME-1`` and so on; with `group`, the groups are
            called so, and their pods ``NAME-0-0``, ``NAME-0-1`` and so on.
        template: A pod template of Kubernetes: ``metadata``, ``spec``.
        count: The most pods; without a limit if it is absent.
        arrivals: When they arrive; all at ``from`` if it is absent.
        from_: Time of the first arrivals.
        until: No pod arrives later.
        lifetime: Distribution of how long a pod runs; it never ends if it is absent.
        requests: Resource -> distribution of what the first container requests.
        controller: Kind of the controller that makes a pod again that was preempted, or whose node
            failed; with an empty text nothing makes it again.
        group: The pods arrive in groups; `count` and `arrivals` then count groups, and the pods of
            a group run for one time.
    """

    name: str = ""
    template: Any = None
    count: int | None = None
    arrivals: Arrivals | None = None
    from_: Duration = msgspec.field(default=Duration(0), name="from")
    until: Duration | None = None
    lifetime: Any = None
    requests: dict[str, Any] = msgspec.field(default_factory=dict)
    controller: str = "Job"
    group: Gangs | None = None


class WorkloadSpec(_Spec, frozen=True):
    """The ``spec`` of a workload file.

    Attributes:
        duration: The experiment ends then; without it, when nothing more can happen.
        drain: Whether the experiment goes on after `duration`, without new pods, until nothing
            more can happen.
        nodes: Groups of nodes; nodes in other files are there as well.
        pods: Groups of pods.
    """

    duration: Duration | None = None
    drain: bool = False
    nodes: tuple[NodeGroup, ...] = ()
    pods: tuple[PodSource, ...] = ()


class _Metadata(_Spec, frozen=True):
    name: str = ""


class _File(_Spec, frozen=True):
    api_version: str = API_VERSION
    kind: str = KIND
    metadata: _Metadata = _Metadata()
    spec: WorkloadSpec = WorkloadSpec()


class NamedWorkload(msgspec.Struct, frozen=True):
    """A decoded workload file."""

    name: str
    spec: WorkloadSpec


def is_workload(document: object) -> bool:
    """Whether a document is a workload file."""
    return isinstance(document, Mapping) and document.get("kind") == KIND


def decode_workload(document: object) -> NamedWorkload:
    """Decode and check a workload file; its distributions become `Distribution`.

    Raises:
        InvalidConfiguration: With all errors.
    """
    errors: list[ConfigError] = []
    decoded = decode_struct(document, _File, "", errors)
    if decoded.api_version != API_VERSION:
        errors.append(ConfigError("apiVersion", decoded.api_version, API_VERSION))
    spec = decoded.spec
    nodes = [
        _checked_group(group, spec, f"spec.nodes[{index}]", errors)
        for index, group in enumerate(spec.nodes)
    ]
    pods = [
        _checked_source(source, spec, f"spec.pods[{index}]", errors)
        for index, source in enumerate(spec.pods)
    ]
    for kind, parts in (("nodes", spec.nodes), ("pods", spec.pods)):
        _check_names(kind, [each.name for each in parts], errors)
    if errors:
        raise InvalidConfiguration(errors)
    spec = msgspec.structs.replace(spec, nodes=tuple(nodes), pods=tuple(pods))
    return NamedWorkload(decoded.metadata.name or "workload", spec)


def read_seconds(value: object) -> float:
    """A duration in seconds: a number, or Go's notation.

    Raises:
        ValueError: It is neither.
    """
    if isinstance(value, str):
        try:
            return plain_number(float(parse_duration(value)))
        except ValueError:
            value = None
    try:
        return plain_number(value)
    except ValueError:
        raise ValueError("a duration such as 90 (seconds), 15s or 1m30s") from None


def read_amount(resource: str, value: object) -> float:
    """An amount of a resource: cpu in thousandths, others in whole units.

    Raises:
        ValueError: It is no quantity.
    """
    try:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise TypeError
        read = quantity_milli_value if resource == CPU else quantity_value
        return plain_number(read(value))
    except (TypeError, ValueError, QuantityError):
        raise ValueError("a quantity such as 500m or 2Gi") from None


def _check_names(kind: str, names: Iterable[str], errors: list[ConfigError]) -> None:
    seen: set[str] = set()
    for index, name in enumerate(names):
        if not name or name in seen:
            expected = "a name that no other group has" if name else "a name"
            errors.append(ConfigError(f"spec.{kind}[{index}].name", name, expected))
        seen.add(name)


def _checked_group(
    group: NodeGroup, spec: WorkloadSpec, path: str, errors: list[ConfigError]
) -> NodeGroup:
    if not 0 <= group.count <= MAX_NODES:
        errors.append(ConfigError(f"{path}.count", group.count, f"0 to {MAX_NODES:,}"))
    _check_times(group.from_, group.until, path, errors)
    for index, devices in enumerate(group.devices):
        field = f"{path}.devices[{index}]"
        if not devices.driver:
            errors.append(ConfigError(f"{field}.driver", devices.driver, "the name of a driver"))
        if not 1 <= devices.count <= MAX_DEVICES:
            errors.append(ConfigError(f"{field}.count", devices.count, f"1 to {MAX_DEVICES}"))
    failures = group.failures
    if failures is None:
        return group
    field = f"{path}.failures"
    if spec.duration is None:
        errors.append(ConfigError("spec.duration", None, f"a duration, for {field} has no end"))
    after = decode_distribution(failures.after, read_seconds, f"{field}.after", errors)
    repair = decode_distribution(failures.repair, read_seconds, f"{field}.repair", errors)
    if after is not None and repair is not None and not after.mean + repair.mean > 0:
        errors.append(ConfigError(f"{field}.after", failures.after, "more than 0 seconds"))
    return msgspec.structs.replace(group, failures=Failures(after, repair))


def _checked_source(
    source: PodSource, spec: WorkloadSpec, path: str, errors: list[ConfigError]
) -> PodSource:
    _check_times(source.from_, source.until, path, errors)
    if source.count is not None and source.count < 0:
        errors.append(ConfigError(f"{path}.count", source.count, "0 or more"))
    if source.count is None:
        if source.arrivals is None:
            errors.append(ConfigError(f"{path}.count", None, "a number, for there are no arrivals"))
        elif source.until is None and spec.duration is None:
            expected = "a number, or until, or spec.duration: the arrivals have no end"
            errors.append(ConfigError(f"{path}.count", None, expected))
    lifetime, arrivals = source.lifetime, source.arrivals
    if lifetime is not None:
        lifetime = decode_distribution(lifetime, read_seconds, f"{path}.lifetime", errors)
    if arrivals is not None:
        arrivals = _checked_arrivals(arrivals, f"{path}.arrivals", errors)
    requests: dict[str, Distribution | None] = {
        name: decode_distribution(
            given, partial(read_amount, name), f"{path}.requests.{name}", errors
        )
        for name, given in source.requests.items()
    }
    return msgspec.structs.replace(
        source,
        lifetime=lifetime,
        arrivals=arrivals,
        requests=requests,
        group=None if source.group is None else _checked_gangs(source.group, path, errors),
    )


def _checked_gangs(gangs: Gangs, path: str, errors: list[ConfigError]) -> Gangs:
    field = f"{path}.group"
    if gangs.min_count is not None and gangs.min_count < 1:
        errors.append(ConfigError(f"{field}.minCount", gangs.min_count, "1 or more"))
    if gangs.template is not None and not isinstance(gangs.template, Mapping):
        errors.append(ConfigError(f"{field}.template", gangs.template, "a PodGroup"))
    size = decode_distribution(gangs.size, plain_number, f"{field}.size", errors)
    if size is not None and not size.mean >= 1:
        errors.append(ConfigError(f"{field}.size", gangs.size, "1 or more on average"))
    return msgspec.structs.replace(gangs, size=size)


def _checked_arrivals(arrivals: Arrivals, path: str, errors: list[ConfigError]) -> Arrivals:
    if arrivals.process in ("poisson", "constant"):
        if not 0 < arrivals.per_second <= 1e6:
            expected = "pods a second, more than 0 and at most a million"
            errors.append(ConfigError(f"{path}.perSecond", arrivals.per_second, expected))
        return arrivals
    if arrivals.process != "bursts":
        expected = "poisson, constant or bursts"
        errors.append(ConfigError(f"{path}.process", arrivals.process, expected))
        return arrivals
    if arrivals.every is None or not arrivals.every > 0:
        errors.append(ConfigError(f"{path}.every", arrivals.every, "the time between two bursts"))
    size = decode_distribution(arrivals.size, plain_number, f"{path}.size", errors)
    if size is not None and not size.mean >= 1:
        errors.append(ConfigError(f"{path}.size", arrivals.size, "1 or more on average"))
    return msgspec.structs.replace(arrivals, size=size)


def _check_times(
    begin: Duration, end: Duration | None, path: str, errors: list[ConfigError]
) -> None:
    if begin < 0:
        errors.append(ConfigError(f"{path}.from", str(begin), "0s or later"))
    if end is not None and end < begin:
        errors.append(ConfigError(f"{path}.until", str(end), f"{begin} or later"))
