"""Protobuf messages of kinds that kubectl's subcommands create: field numbers, names and types.

Types are ``text``, ``number``, ``flag``, ``map``, ``bytes map``, ``quantities`` (a map to
quantities), ``Quantity``, ``IntOrString``, ``Time``, or the name of a message; ``inline`` before a
message's name puts its fields among those of the message it is in.
"""

from collections.abc import Mapping

Fields = Mapping[int, tuple[str, str]]

_META = ("metadata", "ObjectMeta")
_STATUS = ("", "ignored")
_BINDING: Fields = {
    1: _META,
    2: ("subjects", "repeated Subject"),
    3: ("roleRef", "RoleRef"),
}

MESSAGES: Mapping[str, Fields] = {
    "OwnerReference": {
        1: ("kind", "text"),
        3: ("name", "text"),
        4: ("uid", "text"),
        5: ("apiVersion", "text"),
        6: ("controller", "flag"),
        7: ("blockOwnerDeletion", "flag"),
    },
    "TokenRequest": {1: _META, 2: ("spec", "TokenRequestSpec"), 3: _STATUS},
    "TokenRequestSpec": {
        1: ("audiences", "repeated text"),
        3: ("boundObjectRef", "BoundObjectReference"),
        4: ("expirationSeconds", "number"),
    },
    "BoundObjectReference": {
        1: ("kind", "text"),
        2: ("apiVersion", "text"),
        3: ("name", "text"),
        4: ("uid", "text"),
    },
    "ResourceQuota": {1: _META, 2: ("spec", "ResourceQuotaSpec"), 3: _STATUS},
    "ResourceQuotaSpec": {1: ("hard", "quantities"), 2: ("scopes", "repeated text")},
    "CronJob": {1: _META, 2: ("spec", "CronJobSpec"), 3: _STATUS},
    "CronJobSpec": {
        1: ("schedule", "text"),
        2: ("startingDeadlineSeconds", "number"),
        3: ("concurrencyPolicy", "text"),
        4: ("suspend", "flag"),
        5: ("jobTemplate", "JobTemplateSpec"),
        6: ("successfulJobsHistoryLimit", "number"),
        7: ("failedJobsHistoryLimit", "number"),
        8: ("timeZone", "text"),
    },
    "JobTemplateSpec": {1: _META, 2: ("spec", "JobSpec")},
    "Ingress": {1: _META, 2: ("spec", "IngressSpec"), 3: _STATUS},
    "IngressSpec": {
        1: ("defaultBackend", "IngressBackend"),
        2: ("tls", "repeated IngressTLS"),
        3: ("rules", "repeated IngressRule"),
        4: ("ingressClassName", "text"),
    },
    "IngressTLS": {1: ("hosts", "repeated text"), 2: ("secretName", "text")},
    "IngressRule": {1: ("host", "text"), 2: ("", "inline IngressRuleValue")},
    "IngressRuleValue": {1: ("http", "HTTPIngressRuleValue")},
    "HTTPIngressRuleValue": {1: ("paths", "repeated HTTPIngressPath")},
    "HTTPIngressPath": {
        1: ("path", "text"),
        2: ("backend", "IngressBackend"),
        3: ("pathType", "text"),
    },
    "IngressBackend": {
        3: ("resource", "TypedLocalObjectReference"),
        4: ("service", "IngressServiceBackend"),
    },
    "TypedLocalObjectReference": {
        1: ("apiGroup", "text"),
        2: ("kind", "text"),
        3: ("name", "text"),
    },
    "IngressServiceBackend": {1: ("name", "text"), 2: ("port", "ServiceBackendPort")},
    "ServiceBackendPort": {1: ("name", "text"), 2: ("number", "number")},
    "HorizontalPodAutoscaler": {1: _META, 2: ("spec", "HorizontalPodAutoscalerSpec"), 3: _STATUS},
    "HorizontalPodAutoscalerSpec": {
        1: ("scaleTargetRef", "CrossVersionObjectReference"),
        2: ("minReplicas", "number"),
        3: ("maxReplicas", "number"),
        4: ("metrics", "repeated MetricSpec"),
    },
    "CrossVersionObjectReference": {
        1: ("kind", "text"),
        2: ("name", "text"),
        3: ("apiVersion", "text"),
    },
    "MetricSpec": {1: ("type", "text"), 4: ("resource", "ResourceMetricSource")},
    "ResourceMetricSource": {1: ("name", "text"), 2: ("target", "MetricTarget")},
    "MetricTarget": {
        1: ("type", "text"),
        2: ("value", "Quantity"),
        3: ("averageValue", "Quantity"),
        4: ("averageUtilization", "number"),
    },
    "Role": {1: _META, 2: ("rules", "repeated PolicyRule")},
    "ClusterRole": {1: _META, 2: ("rules", "repeated PolicyRule"), 3: ("", "ignored")},
    "PolicyRule": {
        1: ("verbs", "repeated text"),
        2: ("apiGroups", "repeated text"),
        3: ("resources", "repeated text"),
        4: ("resourceNames", "repeated text"),
        5: ("nonResourceURLs", "repeated text"),
    },
    "RoleBinding": _BINDING,
    "ClusterRoleBinding": _BINDING,
    "Subject": {
        1: ("kind", "text"),
        2: ("apiGroup", "text"),
        3: ("name", "text"),
        4: ("namespace", "text"),
    },
    "RoleRef": {1: ("apiGroup", "text"), 2: ("kind", "text"), 3: ("name", "text")},
    "Service": {1: _META, 2: ("spec", "ServiceSpec"), 3: _STATUS},
    "ServiceSpec": {
        1: ("ports", "repeated ServicePort"),
        2: ("selector", "map"),
        3: ("clusterIP", "text"),
        4: ("type", "text"),
        5: ("externalIPs", "repeated text"),
        7: ("sessionAffinity", "text"),
        8: ("loadBalancerIP", "text"),
        9: ("loadBalancerSourceRanges", "repeated text"),
        10: ("externalName", "text"),
        11: ("externalTrafficPolicy", "text"),
        12: ("healthCheckNodePort", "number"),
        13: ("publishNotReadyAddresses", "flag"),
        17: ("ipFamilyPolicy", "text"),
        18: ("clusterIPs", "repeated text"),
        19: ("ipFamilies", "repeated text"),
        20: ("allocateLoadBalancerNodePorts", "flag"),
        21: ("loadBalancerClass", "text"),
        22: ("internalTrafficPolicy", "text"),
        23: ("trafficDistribution", "text"),
    },
    "ServicePort": {
        1: ("name", "text"),
        2: ("protocol", "text"),
        3: ("port", "number"),
        4: ("targetPort", "IntOrString"),
        5: ("nodePort", "number"),
        6: ("appProtocol", "text"),
    },
    "ResourceRequirements": {1: ("limits", "quantities"), 2: ("requests", "quantities")},
}
