"""Defaults of every built-in kind but pods, by collection."""

import base64
from collections.abc import Callable

from simcluster.kinds.defaults.devices import DEVICE_TABLES
from simcluster.kinds.defaults.filling import QUANTITIES, UNSET, Table, defaulting
from simcluster.kinds.defaults.pod_groups import POD_GROUP_TABLES
from simcluster.kinds.defaults.pods import TEMPLATE, set_pod_defaults
from simcluster.values import Json

_NODE_INFO = (
    "machineID systemUUID bootID kernelVersion osImage containerRuntimeVersion kubeletVersion "
    "kubeProxyVersion operatingSystem architecture"
)
_TCP = {"protocol": "TCP"}
_BUDGET_COUNTS = ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")


def _complete_node(node: Json) -> None:
    spec, status = node["spec"], node["status"]
    first, ranges = spec.get("podCIDR"), spec.get("podCIDRs")
    if first and (not ranges or ranges[0] != first):
        spec["podCIDRs"] = [first]
    elif ranges:
        spec["podCIDR"] = ranges[0]
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])


def _label_namespace(namespace: Json) -> None:
    name = namespace["metadata"].get("name", "")
    namespace["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name


def _encode_strings(secret: Json) -> None:
    """``stringData`` is another way to write ``data``."""
    if texts := secret.pop("stringData", None):
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
        secret["data"] = {**(secret.get("data") or {}), **encoded}


def _start_volume(volume: Json) -> None:
    if not volume.get("status"):
        made = volume["metadata"].get("creationTimestamp")
        volume["status"] = {"phase": "Pending", "lastPhaseTransitionTime": made}


def _select_by_template(controller: Json) -> None:
    labels = controller["spec"]["template"]["metadata"].get("labels")
    if labels:
        controller["spec"].setdefault("selector", dict(labels))
        controller["metadata"].setdefault("labels", dict(labels))


def _complete_limits(limit_range: Json) -> None:
    """The maximum of a container is its default limit, and its default limit its request."""
    for item in (limit_range.get("spec") or {}).get("limits") or ():
        if item.get("type") == "Container":
            limits = {**(item.get("max") or {}), **(item.get("default") or {})}
            requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
            for field, amounts in (("default", limits), ("defaultRequest", requests)):
                if amounts:
                    item[field] = amounts


_ROLLING_BY_QUARTER = {"rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}
_REPLICATED = {"replicas": 1, **TEMPLATE}
_CLAIM_TEMPLATE = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "spec": {"volumeMode": "Filesystem"},
    "status": {"phase": "Pending"},
}
_CPU_TARGET = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
_WITH_EMPTY_STATUS = (
    "apiservices.apiregistration.k8s.io",
    "certificatesigningrequests.certificates.k8s.io",
    "flowschemas.flowcontrol.apiserver.k8s.io",
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
    "servicecidrs.networking.k8s.io",
    "validatingadmissionpolicies.admissionregistration.k8s.io",
)
"""Kinds whose status is no pointer in Go, so that it is written even if it was never set."""
_TABLES: dict[str, Table] = {
    **{collection: {"status": {}} for collection in _WITH_EMPTY_STATUS},
    **DEVICE_TABLES,
    **POD_GROUP_TABLES,
    "nodes": {
        "spec": {},
        "status": {
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
            "nodeInfo": dict.fromkeys(_NODE_INFO.split(), ""),
            "capacity": QUANTITIES,
            "allocatable": QUANTITIES,
        },
    },
    "namespaces": {"spec": {}, "status": {"phase": "Active"}},
    "events": {
        "involvedObject": {},
        "source": {},
        **dict.fromkeys(("firstTimestamp", "lastTimestamp", "eventTime")),
        "reportingComponent": "",
        "reportingInstance": "",
    },
    "secrets": {"type": "Opaque"},
    "services": {
        "spec": {
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "ports[]": {**_TCP, "targetPort": lambda port: port.get("port")},
        },
        "spec?sessionAffinity=ClientIP": {
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}}
        },
        "spec?type=ClusterIP|NodePort|LoadBalancer": {"internalTrafficPolicy": "Cluster"},
        "spec?type=NodePort|LoadBalancer": {"externalTrafficPolicy": "Cluster"},
        "spec?type=LoadBalancer": {"allocateLoadBalancerNodePorts": True},
        "status": {"loadBalancer": {}},
    },
    "persistentvolumes": {
        "spec": {
            "persistentVolumeReclaimPolicy": "Retain",
            "volumeMode": "Filesystem",
            "hostPath?": {"type": ""},
            "capacity": QUANTITIES,
        }
    },
    "persistentvolumeclaims": {
        "spec": {
            "volumeMode": "Filesystem",
            "resources": {"requests": QUANTITIES, "limits": QUANTITIES},
        },
        "status": {"phase": "Pending"},
    },
    "replicationcontrollers": {"spec": _REPLICATED, "status": {"replicas": 0}},
    "deployments.apps": {
        "spec": {
            **_REPLICATED,
            "revisionHistoryLimit": 10,
            "progressDeadlineSeconds": 600,
            "strategy": {"type": "RollingUpdate"},
            "strategy?type=RollingUpdate": _ROLLING_BY_QUARTER,
        },
        "status": {},
    },
    "replicasets.apps": {"spec": _REPLICATED, "status": {"replicas": 0}},
    "statefulsets.apps": {
        "spec": {
            **_REPLICATED,
            "podManagementPolicy": "OrderedReady",
            "revisionHistoryLimit": 10,
            "updateStrategy": {"type": "RollingUpdate"},
            "updateStrategy?type=RollingUpdate": {"rollingUpdate": {"partition": 0}},
            "persistentVolumeClaimRetentionPolicy": {
                "whenDeleted": "Retain",
                "whenScaled": "Retain",
            },
            "volumeClaimTemplates[]": _CLAIM_TEMPLATE,
        },
        "status": {"replicas": 0, "availableReplicas": 0},
    },
    "daemonsets.apps": {
        "spec": {
            **TEMPLATE,
            "revisionHistoryLimit": 10,
            "updateStrategy": {"type": "RollingUpdate"},
            "updateStrategy?type=RollingUpdate": {
                "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}
            },
        },
        "status": {
            "currentNumberScheduled": 0,
            "numberMisscheduled": 0,
            "desiredNumberScheduled": 0,
            "numberReady": 0,
        },
    },
    "jobs.batch": {
        "spec": {
            "completions": lambda spec: UNSET if "parallelism" in spec else 1,
            "parallelism": 1,
            "backoffLimit": 6,
            "completionMode": "NonIndexed",
            "suspend": False,
            "podReplacementPolicy": lambda spec: (
                "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
            ),
            **TEMPLATE,
        },
        "status": {},
    },
    "cronjobs.batch": {
        "spec": {
            "concurrencyPolicy": "Allow",
            "suspend": False,
            "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 1,
            "jobTemplate": {"spec": TEMPLATE},
        },
        "status": {},
    },
    "horizontalpodautoscalers.autoscaling": {
        "spec": {"minReplicas": 1, "metrics": lambda _spec: [_CPU_TARGET]},
        "status": {"desiredReplicas": 0, "currentMetrics": None},
    },
    "priorityclasses.scheduling.k8s.io": {"value": 0, "preemptionPolicy": "PreemptLowerPriority"},
    "poddisruptionbudgets.policy": {"spec": {}, "status": dict.fromkeys(_BUDGET_COUNTS, 0)},
    "storageclasses.storage.k8s.io": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    "csinodes.storage.k8s.io": {"spec": {"drivers": None}},
    "csidrivers.storage.k8s.io": {
        "spec": {
            "attachRequired": True,
            "podInfoOnMount": False,
            "storageCapacity": False,
            "fsGroupPolicy": "ReadWriteOnceWithFSType",
            "requiresRepublish": False,
            "seLinuxMount": False,
            "volumeLifecycleModes": ["Persistent"],
        }
    },
    "csistoragecapacities.storage.k8s.io": {
        "capacity": QUANTITIES,
        "maximumVolumeSize": QUANTITIES,
    },
    "volumeattachments.storage.k8s.io": {"status": {"attached": False}},
    "resourcequotas": {"spec?": {"hard": QUANTITIES}, "status": {}},
    "limitranges": {
        "spec?": {
            "limits[]": dict.fromkeys(("max", "min", "default", "defaultRequest"), QUANTITIES)
        }
    },
    "endpoints": {"subsets[]": {"ports[]": _TCP}},
    "endpointslices.discovery.k8s.io": {"ports[]": {"name": "", **_TCP}},
    "ingresses.networking.k8s.io": {"spec": {}, "status": {"loadBalancer": {}}},
    "networkpolicies.networking.k8s.io": {
        "spec": {
            "policyTypes": lambda spec: ["Ingress", *(["Egress"] if spec.get("egress") else ())],
            "ingress[]": {"ports[]": _TCP},
            "egress[]": {"ports[]": _TCP},
        }
    },
}
_THEN: dict[str, Callable[[Json], None]] = {
    "nodes": _complete_node,
    "namespaces": _label_namespace,
    "secrets": _encode_strings,
    "persistentvolumes": _start_volume,
    "replicationcontrollers": _select_by_template,
    "limitranges": _complete_limits,
}
DEFAULTS: dict[str, Callable[[Json], None]] = {
    "pods": set_pod_defaults,
    **{
        collection: defaulting(table, *filter(None, [_THEN.get(collection)]))
        for collection, table in _TABLES.items()
    },
}
