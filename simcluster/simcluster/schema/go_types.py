"""How Go holds a field: its type's name in decoding errors, and whether it is a pointer.

A field that is no pointer has no difference between not set and empty, so the API server leaves an
empty one out when it writes the object.
"""

_NAMED = {
    "concurrencyPolicy": "ConcurrencyPolicy",
    "dnsPolicy": "DNSPolicy",
    "externalTrafficPolicy": "ServiceExternalTrafficPolicy",
    "imagePullPolicy": "PullPolicy",
    "ipFamilyPolicy": "IPFamilyPolicy",
    "internalTrafficPolicy": "ServiceInternalTrafficPolicy",
    "mountPropagation": "MountPropagationMode",
    "operator": "",
    "persistentVolumeReclaimPolicy": "PersistentVolumeReclaimPolicy",
    "podManagementPolicy": "PodManagementPolicyType",
    "preemptionPolicy": "PreemptionPolicy",
    "protocol": "Protocol",
    "qosClass": "PodQOSClass",
    "restartPolicy": "RestartPolicy",
    "scheme": "URIScheme",
    "sessionAffinity": "ServiceAffinity",
    "terminationMessagePolicy": "TerminationMessagePolicy",
    "volumeBindingMode": "VolumeBindingMode",
    "volumeMode": "PersistentVolumeMode",
    "whenUnsatisfiable": "UnsatisfiableConstraintAction",
    "Container.restartPolicy": "ContainerRestartPolicy",
    "NamespaceStatus.phase": "NamespacePhase",
    "PodStatus.phase": "PodPhase",
    "Taint.effect": "TaintEffect",
    "Toleration.effect": "TaintEffect",
    "Toleration.operator": "TolerationOperator",
    "ObjectMeta.uid": "UID",
    "OwnerReference.uid": "UID",
    "ServiceSpec.type": "ServiceType",
}
_MAPS = {
    "limits": "v1.ResourceList",
    "requests": "v1.ResourceList",
    "capacity": "v1.ResourceList",
    "allocatable": "v1.ResourceList",
    "overhead": "v1.ResourceList",
}
_POINTER_STRINGS = frozenset(
    [
        "holderIdentity",
        "hostnameOverride",
        "ingressClassName",
        "internalTrafficPolicy",
        "ipFamilyPolicy",
        "loadBalancerClass",
        "localhostProfile",
        "mountPropagation",
        "namespaceExpr",
        "preemptionPolicy",
        "procMount",
        "recursiveReadOnly",
        "resourceClaimName",
        "resourceClaimTemplateName",
        "runtimeClassName",
        "seLinuxChangePolicy",
        "subPathExpr",
        "fsGroupPolicy",
        "fsGroupChangePolicy",
        "supplementalGroupsPolicy",
        "trafficDistribution",
        "unhealthyPodEvictionPolicy",
        "volumeAttributesClassName",
        "volumeBindingMode",
        "volumeMode",
        "appProtocol",
        "reclaimPolicy",
        "nodeAffinityPolicy",
        "nodeTaintsPolicy",
        "completionMode",
        "podReplacementPolicy",
        "managedBy",
        "preferredHolder",
        "strategy",
        "dataSourceApiGroup",
        "gmsaCredentialSpec",
        "persistentVolumeName",
        "inlineVolumeSpec",
    ]
)
_POINTER_STRING_FIELDS = frozenset(
    (
        "PersistentVolumeClaimSpec.storageClassName",
        "HostPathVolumeSource.type",
        "Container.restartPolicy",
        "TypedLocalObjectReference.apiGroup",
        "TypedObjectReference.apiGroup",
        "TypedObjectReference.namespace",
        "VolumeAttachmentSource.persistentVolumeName",
        "GRPCAction.service",
        "EndpointPort.name",
        "discovery.EndpointPort.name",
        "discovery.EndpointPort.protocol",
    )
)
_VALUE_BOOLS = frozenset(
    [
        "chapAuthDiscovery",
        "chapAuthSession",
        "globalDefault",
        "hostIPC",
        "hostNetwork",
        "hostPID",
        "paused",
        "publishNotReadyAddresses",
        "readOnly",
        "sslEnabled",
        "stdin",
        "stdinOnce",
        "tty",
        "unschedulable",
        "allowed",
        "denied",
        "authenticated",
        "incomplete",
        "exact",
    ]
)
_VALUE_INTS = frozenset(
    [
        "availableReplicas",
        "collisionCountless",
        "count",
        "currentReplicas",
        "deprecatedCount",
        "failureThreshold",
        "fullyLabeledReplicas",
        "generation",
        "healthCheckNodePort",
        "hostPort",
        "initialDelaySeconds",
        "minReadySeconds",
        "nodePort",
        "number",
        "numberAvailable",
        "numberUnavailable",
        "observedGeneration",
        "periodSeconds",
        "readyReplicas",
        "signal",
        "sizeBytes",
        "successThreshold",
        "succeeded",
        "failed",
        "active",
        "timeoutSeconds",
        "unavailableReplicas",
        "updatedReplicas",
        "updatedNumberScheduled",
    ]
)
_ALWAYS_WRITTEN = frozenset(
    (
        "ConfigMapVolumeSource.name",
        "VolumeNodeResources.count",
        "ContainerPort.containerPort",
        "EnvFromSource.name",
        "PriorityClass.value",
        "ReplicaSetStatus.replicas",
        "ReplicationControllerStatus.replicas",
        "StatefulSetStatus.replicas",
        "ServiceStatus.loadBalancer",
        "JobStatus.ready",
        "JobStatus.terminating",
        "PodDisruptionBudgetStatus.currentHealthy",
        "Role.rules",
        "ClusterRole.rules",
        "PolicyRule.verbs",
    )
)


def go_type(owner: str, field: str, text: str = "string") -> str:
    """The Go type of a field whose type is ``text``, as ``json: cannot unmarshal`` names it."""
    if text.startswith("[]"):
        return "[]" + go_type(owner, "", text[2:])
    if text.startswith("{}"):
        return _MAPS.get(field) or "map[string]" + go_type(owner, "", text[2:])
    if text == "string":
        named = _NAMED.get(f"{owner}.{field}") or _NAMED.get(field, "")
        return ("types." if named == "UID" else "v1.") + named if named else "string"
    if text in {"int32", "int64", "bool"}:
        return text
    return {"float": "float64", "any": "interface {}", "bytes": "[]uint8"}.get(text) or (
        "v1." + text.rpartition(".")[2]
    )


def is_pointer(owner: str, field: str, text: str) -> bool:
    """Whether a field may hold something empty."""
    name = f"{owner}.{field}"
    if name in _ALWAYS_WRITTEN:
        return True
    if text == "string":
        return field in _POINTER_STRINGS or name in _POINTER_STRING_FIELDS
    if text == "bool":
        return field not in _VALUE_BOOLS
    if text in {"int32", "int64"}:
        return field not in _VALUE_INTS
    return not text.startswith(("[]", "{}"))
