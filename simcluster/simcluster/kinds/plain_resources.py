"""Kinds that are kept, listed and watched, but that nothing in this cluster acts on.

Clients look for them: ``kubectl get all``, ``kubectl describe``, informers of schedulers and
operators. Most have no rules here but those of every object.
"""

from simcluster.kinds.resources import Resource

_STATUS = ("status",)

COMPONENT_STATUSES = Resource(
    "",
    "v1",
    "ComponentStatus",
    "componentstatuses",
    namespaced=False,
    short_names=("cs",),
    verbs=("get", "list"),
)
ENDPOINTS = Resource("", "v1", "Endpoints", "endpoints", short_names=("ep",), create_on_update=True)
LIMIT_RANGES = Resource(
    "", "v1", "LimitRange", "limitranges", short_names=("limits",), create_on_update=True
)
POD_TEMPLATES = Resource("", "v1", "PodTemplate", "podtemplates", has_generation=True)
RESOURCE_QUOTAS = Resource(
    "", "v1", "ResourceQuota", "resourcequotas", short_names=("quota",), subresources=_STATUS
)
HORIZONTAL_POD_AUTOSCALERS = Resource(
    "autoscaling",
    "v2",
    "HorizontalPodAutoscaler",
    "horizontalpodautoscalers",
    short_names=("hpa",),
    categories=("all",),
    subresources=_STATUS,
)
CRON_JOBS = Resource(
    "batch",
    "v1",
    "CronJob",
    "cronjobs",
    short_names=("cj",),
    categories=("all",),
    subresources=_STATUS,
    has_generation=True,
)
INGRESSES = Resource(
    "networking.k8s.io",
    "v1",
    "Ingress",
    "ingresses",
    short_names=("ing",),
    subresources=_STATUS,
    has_generation=True,
)
INGRESS_CLASSES = Resource(
    "networking.k8s.io",
    "v1",
    "IngressClass",
    "ingressclasses",
    namespaced=False,
    has_generation=True,
)
NETWORK_POLICIES = Resource(
    "networking.k8s.io",
    "v1",
    "NetworkPolicy",
    "networkpolicies",
    short_names=("netpol",),
    has_generation=True,
)
VOLUME_ATTRIBUTES_CLASSES = Resource(
    "storage.k8s.io",
    "v1",
    "VolumeAttributesClass",
    "volumeattributesclasses",
    namespaced=False,
    short_names=("vac",),
    create_on_update=True,
)
RUNTIME_CLASSES = Resource(
    "node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", namespaced=False, create_on_update=True
)
ENDPOINT_SLICES = Resource(
    "discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", has_generation=True
)
DEVICE_CLASSES = Resource(
    "resource.k8s.io",
    "v1",
    "DeviceClass",
    "deviceclasses",
    namespaced=False,
    has_generation=True,
    create_on_update=True,
)
RESOURCE_CLAIMS = Resource(
    "resource.k8s.io", "v1", "ResourceClaim", "resourceclaims", subresources=_STATUS
)
RESOURCE_CLAIM_TEMPLATES = Resource(
    "resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates"
)
RESOURCE_SLICES = Resource(
    "resource.k8s.io",
    "v1",
    "ResourceSlice",
    "resourceslices",
    namespaced=False,
    has_generation=True,
    create_on_update=True,
)

PLAIN_RESOURCES = (
    COMPONENT_STATUSES,
    ENDPOINTS,
    LIMIT_RANGES,
    POD_TEMPLATES,
    RESOURCE_QUOTAS,
    HORIZONTAL_POD_AUTOSCALERS,
    CRON_JOBS,
    INGRESSES,
    INGRESS_CLASSES,
    NETWORK_POLICIES,
    VOLUME_ATTRIBUTES_CLASSES,
    RUNTIME_CLASSES,
    ENDPOINT_SLICES,
    DEVICE_CLASSES,
    RESOURCE_CLAIMS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_SLICES,
)
