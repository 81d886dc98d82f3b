"""Kinds that configure an API server, kept so that who lists or writes them finds them.

Nothing here obeys them: no webhook is called, no policy decides, no certificate is signed, and no
flow is held back.
"""

from simcluster.kinds.resources import Resource

ADMISSION = "admissionregistration.k8s.io"
FLOW_CONTROL = "flowcontrol.apiserver.k8s.io"
_EXTENSIONS = ("api-extensions",)
_STATUS = ("status",)


def _admission(kind: str, plural: str, subresources: tuple[str, ...] = ()) -> Resource:
    return Resource(
        ADMISSION,
        "v1",
        kind,
        plural,
        namespaced=False,
        categories=_EXTENSIONS,
        subresources=subresources,
        has_generation=True,
        unconditional_update=False,
    )


API_SERVICES = Resource(
    "apiregistration.k8s.io",
    "v1",
    "APIService",
    "apiservices",
    namespaced=False,
    categories=_EXTENSIONS,
    subresources=_STATUS,
    unconditional_update=False,
    has_path_names=True,
)
CERTIFICATE_SIGNING_REQUESTS = Resource(
    "certificates.k8s.io",
    "v1",
    "CertificateSigningRequest",
    "certificatesigningrequests",
    namespaced=False,
    short_names=("csr",),
    subresources=("approval", *_STATUS),
    has_path_names=True,
)
IP_ADDRESSES = Resource(
    "networking.k8s.io",
    "v1",
    "IPAddress",
    "ipaddresses",
    namespaced=False,
    short_names=("ip",),
    has_path_names=True,
)
SERVICE_CIDRS = Resource(
    "networking.k8s.io",
    "v1",
    "ServiceCIDR",
    "servicecidrs",
    namespaced=False,
    subresources=_STATUS,
)
FLOW_SCHEMAS = Resource(
    FLOW_CONTROL,
    "v1",
    "FlowSchema",
    "flowschemas",
    namespaced=False,
    subresources=_STATUS,
    has_generation=True,
)
PRIORITY_LEVELS = Resource(
    FLOW_CONTROL,
    "v1",
    "PriorityLevelConfiguration",
    "prioritylevelconfigurations",
    namespaced=False,
    subresources=_STATUS,
    has_generation=True,
)

CONTROL_PLANE_RESOURCES = (
    API_SERVICES,
    CERTIFICATE_SIGNING_REQUESTS,
    IP_ADDRESSES,
    SERVICE_CIDRS,
    FLOW_SCHEMAS,
    PRIORITY_LEVELS,
    _admission("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
    _admission("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    _admission("MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
    _admission("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings"),
    _admission("ValidatingAdmissionPolicy", "validatingadmissionpolicies", _STATUS),
    _admission("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
)
