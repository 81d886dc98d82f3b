"""The API types of the kubernetes client's models: the source of the served schema.

``python -m simcluster.tests.support.client_models`` prints the content of
``simcluster/simcluster/schema/types.json``; a test checks that the two are equal.
"""

import re
import sys
from functools import cache
from typing import Any

import msgspec
from kubernetes import client

ROOTS = [
    "V1Pod",
    "V1Node",
    "V1Namespace",
    "V1ConfigMap",
    "V1Secret",
    "V1ServiceAccount",
    "V1Service",
    "V1ReplicationController",
    "V1PersistentVolume",
    "V1PersistentVolumeClaim",
    "CoreV1Event",
    "EventsV1Event",
    "V1Deployment",
    "V1ReplicaSet",
    "V1StatefulSet",
    "V1DaemonSet",
    "V1ControllerRevision",
    "V1Job",
    "V1CronJob",
    "V1Lease",
    "V1PriorityClass",
    "V1PodDisruptionBudget",
    "V1Eviction",
    "V1StorageClass",
    "V1CSINode",
    "V1CSIDriver",
    "V1CSIStorageCapacity",
    "V1VolumeAttachment",
    "V1Role",
    "V1RoleBinding",
    "V1ClusterRole",
    "V1ClusterRoleBinding",
    "V1Binding",
    "V1DeleteOptions",
    "V1Scale",
    "V1ResourceQuota",
    "V1LimitRange",
    "V1Endpoints",
    "V1EndpointSlice",
    "V1RuntimeClass",
    "V1Ingress",
    "V1IngressClass",
    "V1VolumeAttributesClass",
    "V1NetworkPolicy",
    "V2HorizontalPodAutoscaler",
    "V1PodTemplate",
    "V1TokenReview",
    "V1SelfSubjectReview",
    "V1SubjectAccessReview",
    "V1SelfSubjectAccessReview",
    "V1LocalSubjectAccessReview",
    "V1SelfSubjectRulesReview",
    "AuthenticationV1TokenRequest",
    "V1CustomResourceDefinition",
    "V1ComponentStatus",
    "V1DeviceClass",
    "ResourceV1ResourceClaim",
    "V1ResourceClaimTemplate",
    "V1ResourceSlice",
    "V1APIService",
    "V1CertificateSigningRequest",
    "V1IPAddress",
    "V1ServiceCIDR",
    "V1FlowSchema",
    "V1PriorityLevelConfiguration",
    "V1MutatingWebhookConfiguration",
    "V1ValidatingWebhookConfiguration",
    "V1MutatingAdmissionPolicy",
    "V1MutatingAdmissionPolicyBinding",
    "V1ValidatingAdmissionPolicy",
    "V1ValidatingAdmissionPolicyBinding",
    "V1Status",
]
_QUALIFIED = re.compile(
    r"(Events|Storage|Discovery|Flowcontrol|Resource|Apiextensions|Admissionregistration"
    r"|Apiregistration)V1(\w+)"
)
"""Prefixes of models whose names exist in several API groups."""
_PREFIX = re.compile(r"(?:Core|Rbac|Authentication)?V\d(?:(?:alpha|beta)\d)?")
_LATER = frozenset(
    [
        "PodSpec.evictionResponders",
        "HTTPGetAction.protocol",
        "DeviceCounterConsumption.compatibilityGroups",
        "DeviceRequestAllocationResult.skipNodeOperations",
        "DeviceSubRequest.derivedAttributes",
        "ExactDeviceRequest.derivedAttributes",
        "ResourceSliceSpec.partitionTypeAttribute",
        "ResourceSliceSpec.skipNodeOperations",
    ]
)
"""Fields of the client that v1.36 does not have."""
_SCALARS = {"str": "string", "int": "int", "bool": "bool", "float": "float", "object": "any"}
_QUANTITIES = {
    "AccessCapacity.requests": "Quantity",
    "CSIStorageCapacity.capacity": "Quantity",
    "CSIStorageCapacity.maximumVolumeSize": "Quantity",
    "EmptyDirVolumeSource.sizeLimit": "Quantity",
    "ResourceFieldSelector.divisor": "Quantity",
    "MetricTarget.averageValue": "Quantity",
    "MetricTarget.value": "Quantity",
    "MetricValueStatus.averageValue": "Quantity",
    "MetricValueStatus.value": "Quantity",
    "DeviceCapacity.value": "Quantity",
    "Counter.value": "Quantity",
    "CapacityRequestPolicy.default": "Quantity",
    "CapacityRequestPolicyRange.max": "Quantity",
    "CapacityRequestPolicyRange.min": "Quantity",
    "CapacityRequestPolicyRange.step": "Quantity",
    "CapacityRequestPolicy.validValues": "Quantity",
}
_QUANTITY_MAPS = frozenset(
    [
        "limits",
        "requests",
        "capacity",
        "allocatable",
        "overhead",
        "hard",
        "used",
        "allocatedResources",
        "consumedCapacity",
        "default",
        "defaultRequest",
        "max",
        "min",
        "maxLimitRequestRatio",
        "podFixed",
    ]
)
_BYTES = frozenset(("Secret.data", "ConfigMap.binaryData"))
_INT_OR_STRING = frozenset(
    ("port", "targetPort", "maxUnavailable", "maxSurge", "minAvailable", "maxUnavailable")
)
_MICRO_TIMES = frozenset(("eventTime", "acquireTime", "renewTime", "lastObservedTime"))
_INT64 = frozenset(
    [
        "generation",
        "observedGeneration",
        "deletionGracePeriodSeconds",
        "terminationGracePeriodSeconds",
        "activeDeadlineSeconds",
        "tolerationSeconds",
        "runAsUser",
        "runAsGroup",
        "fsGroup",
        "supplementalGroups",
        "expirationSeconds",
        "sizeBytes",
        "seconds",
        "gracePeriodSeconds",
        "uid",
        "gid",
        "revision",
        "startingDeadlineSeconds",
        "maxItems",
        "maxLength",
        "maxProperties",
        "minItems",
        "minLength",
        "minProperties",
        "DeviceAttribute.int",
        "DeviceAttribute.ints",
        "DeviceSubRequest.count",
        "ExactDeviceRequest.count",
        "ResourcePool.resourceSliceCount",
    ]
)


def type_name(model: str) -> str:
    """``PodSpec`` for ``V1PodSpec``, ``events.Event`` for ``EventsV1Event``."""
    if found := _QUALIFIED.fullmatch(model):
        return f"{found[1].lower()}.{found[2]}"
    return _PREFIX.sub("", model, count=1)


@cache
def types() -> dict[str, dict[str, str]]:
    """Every type reachable from the roots: its fields, each with its type; ``!`` if required."""
    found: dict[str, dict[str, str]] = {}
    pending = list(ROOTS)
    while pending:
        model = pending.pop()
        if type_name(model) in found:
            continue
        cls = getattr(client, model)
        fields = found[type_name(model)] = {}
        infos = {info.serialization_alias or name: info for name, info in cls.model_fields.items()}
        for attribute, declared in cls.openapi_types.items():
            field = cls.attribute_map[attribute]
            if f"{type_name(model)}.{field}" in _LATER:
                continue
            text = _described(type_name(model), field, declared, pending)
            fields[field] = text + ("!" if infos[field].is_required() else "")
    return {name: dict(sorted(found[name].items())) for name in sorted(found)}


def _described(owner: str, field: str, declared: str, pending: list[str]) -> str:
    inner = re.fullmatch(r"(?:list|List)\[(.*)\]", declared)
    if inner:
        return "[]" + _described(owner, field, inner[1], pending)
    inner = re.fullmatch(r"dict\((?:str, )?(.*)\)|Dict\[str, (.*)\]", declared)
    if inner:
        return "{}" + _map_value(owner, field, inner[1] or inner[2], pending)
    return _scalar(owner, field, declared, pending)


def _map_value(owner: str, field: str, declared: str, pending: list[str]) -> str:
    if declared == "str" and field in _QUANTITY_MAPS:
        return "Quantity"
    if f"{owner}.{field}" in _BYTES:
        return "bytes"
    return _described(owner, field, declared, pending)


def _scalar(owner: str, field: str, declared: str, pending: list[str]) -> str:
    if f"{owner}.{field}" in _QUANTITIES:
        return "Quantity"
    if declared == "object" and field in _INT_OR_STRING:
        return "IntOrString"
    if declared == "datetime":
        return "MicroTime" if field in _MICRO_TIMES else "Time"
    if declared == "int":
        return "int64" if {field, f"{owner}.{field}"} & _INT64 else "int32"
    if declared in _SCALARS or declared == "bytes":
        return _SCALARS.get(declared, declared)
    pending.append(declared)
    return type_name(declared)


def encoded(found: Any) -> bytes:
    """The types as JSON, one on each line."""
    lines = [
        f" {msgspec.json.encode(name).decode()}: {msgspec.json.encode(fields).decode()}"
        for name, fields in found.items()
    ]
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


if __name__ == "__main__":
    sys.stdout.buffer.write(encoded(types()))
