"""What each Table column says of itself.

Most columns show one field and are described as that field is, so they name it:
``V1PodStatus.podIP`` stands for the description of that field.
"""

import re
from collections.abc import Mapping

from simcluster.openapi.model_schemas import has_model, model

_FIELD = re.compile(r"(V\d\w+)\.(\w+)")
_ANY_KIND = {
    "Name": "V1ObjectMeta.name",
    "Age": "V1ObjectMeta.creationTimestamp",
    "Created At": "V1ObjectMeta.creationTimestamp",
    "Containers": "Names of each container in the template.",
    "Images": "Images referenced by each container in the template.",
}
_BINDING = {
    "Users": "Users in the roleBinding",
    "Groups": "Groups in the roleBinding",
    "ServiceAccounts": "ServiceAccounts in the roleBinding",
}
_BY_KIND: Mapping[str, Mapping[str, str]] = {
    "pods": {
        "Ready": "The aggregate readiness state of this pod for accepting traffic.",
        "Status": "The aggregate status of the containers in this pod.",
        "Restarts": "The number of times the containers in this pod have been restarted and when "
        "the last container in this pod has restarted.",
        "IP": "V1PodStatus.podIP",
        "Node": "V1PodSpec.nodeName",
        "Nominated Node": "V1PodStatus.nominatedNodeName",
        "Readiness Gates": "V1PodSpec.readinessGates",
    },
    "podtemplates": {"Pod Labels": "The labels for the pod template."},
    "poddisruptionbudgets.policy": {
        "Min Available": "The minimum number of pods that must be available.",
        "Max Unavailable": "The maximum number of pods that may be unavailable.",
        "Allowed Disruptions": "Calculated number of pods that may be disrupted at this time.",
    },
    "replicationcontrollers": {
        "Desired": "V1ReplicationControllerSpec.replicas",
        "Current": "V1ReplicationControllerStatus.replicas",
        "Ready": "V1ReplicationControllerStatus.readyReplicas",
        "Selector": "V1ReplicationControllerSpec.selector",
    },
    "replicasets.apps": {
        "Desired": "V1ReplicaSetSpec.replicas",
        "Current": "V1ReplicaSetStatus.replicas",
        "Ready": "V1ReplicaSetStatus.readyReplicas",
        "Selector": "V1ReplicaSetSpec.selector",
    },
    "daemonsets.apps": {
        "Desired": "V1DaemonSetStatus.desiredNumberScheduled",
        "Current": "V1DaemonSetStatus.currentNumberScheduled",
        "Ready": "V1DaemonSetStatus.numberReady",
        "Up-to-date": "V1DaemonSetStatus.updatedNumberScheduled",
        "Available": "V1DaemonSetStatus.numberAvailable",
        "Node Selector": "V1PodSpec.nodeSelector",
        "Selector": "V1DaemonSetSpec.selector",
    },
    "jobs.batch": {
        "Status": "Status of the job.",
        "Completions": "V1JobStatus.succeeded",
        "Duration": "Time required to complete the job.",
        "Selector": "V1JobSpec.selector",
    },
    "cronjobs.batch": {
        "Schedule": "V1CronJobSpec.schedule",
        "Timezone": "V1CronJobSpec.timeZone",
        "Suspend": "V1CronJobSpec.suspend",
        "Active": "V1CronJobStatus.active",
        "Last Schedule": "V1CronJobStatus.lastScheduleTime",
        "Selector": "V1JobSpec.selector",
    },
    "services": {
        "Type": "V1ServiceSpec.type",
        "Cluster-IP": "V1ServiceSpec.clusterIP",
        "External-IP": "V1ServiceSpec.externalIPs",
        "Port(s)": "V1ServiceSpec.ports",
        "Selector": "V1ServiceSpec.selector",
    },
    "ingresses.networking.k8s.io": {
        "Class": "The name of the IngressClass resource that should be used for additional "
        "configuration",
        "Hosts": "Hosts that incoming requests are matched against before the ingress rule",
        "Address": "Address is a list containing ingress points for the load-balancer",
        "Ports": "Ports of TLS configurations that open",
    },
    "ingressclasses.networking.k8s.io": {
        "Controller": "Controller that is responsible for handling this class",
        "Parameters": "A reference to a resource with additional parameters",
    },
    "statefulsets.apps": {"Ready": "Number of the pod with ready state"},
    "endpoints": {"Endpoints": "V1Endpoints.subsets"},
    "nodes": {
        "Status": "The status of the node",
        "Roles": "The roles of the node",
        "Version": "V1NodeSystemInfo.kubeletVersion",
        "Internal-IP": "V1NodeStatus.addresses",
        "External-IP": "V1NodeStatus.addresses",
        "OS-Image": "V1NodeSystemInfo.osImage",
        "Kernel-Version": "V1NodeSystemInfo.kernelVersion",
        "Container-Runtime": "V1NodeSystemInfo.containerRuntimeVersion",
    },
    "namespaces": {"Status": "The status of the namespace"},
    "secrets": {"Type": "V1Secret.type", "Data": "V1Secret.data"},
    "serviceaccounts": {"Secrets": "V1ServiceAccount.secrets"},
    "persistentvolumes": {
        "Capacity": "V1PersistentVolumeSpec.capacity",
        "Access Modes": "V1PersistentVolumeSpec.accessModes",
        "Reclaim Policy": "V1PersistentVolumeSpec.persistentVolumeReclaimPolicy",
        "Status": "V1PersistentVolumeStatus.phase",
        "Claim": "V1PersistentVolumeSpec.claimRef",
        "StorageClass": "StorageClass of the pv",
        "VolumeAttributesClass": "VolumeAttributesClass of the pv",
        "Reason": "V1PersistentVolumeStatus.reason",
        "VolumeMode": "V1PersistentVolumeSpec.volumeMode",
    },
    "persistentvolumeclaims": {
        "Status": "V1PersistentVolumeClaimStatus.phase",
        "Volume": "V1PersistentVolumeClaimSpec.volumeName",
        "Capacity": "V1PersistentVolumeClaimStatus.capacity",
        "Access Modes": "V1PersistentVolumeClaimStatus.accessModes",
        "StorageClass": "StorageClass of the pvc",
        "VolumeAttributesClass": "VolumeAttributesClass of the pvc",
        "VolumeMode": "V1PersistentVolumeClaimSpec.volumeMode",
    },
    "componentstatuses": {
        "Status": "Status of the component conditions",
        "Message": "Message of the component conditions",
        "Error": "Error of the component conditions",
    },
    "deployments.apps": {
        "Ready": "Number of the pod with ready state",
        "Up-to-date": "V1DeploymentStatus.updatedReplicas",
        "Available": "V1DeploymentStatus.availableReplicas",
        "Selector": "V1DeploymentSpec.selector",
    },
    "horizontalpodautoscalers.autoscaling": {
        "Reference": "V2HorizontalPodAutoscalerSpec.scaleTargetRef",
        "Targets": "V2HorizontalPodAutoscalerSpec.metrics",
        "MinPods": "V2HorizontalPodAutoscalerSpec.minReplicas",
        "MaxPods": "V2HorizontalPodAutoscalerSpec.maxReplicas",
        "Replicas": "V2HorizontalPodAutoscalerStatus.currentReplicas",
    },
    "configmaps": {"Data": "V1ConfigMap.data"},
    "networkpolicies.networking.k8s.io": {"Pod-Selector": "V1NetworkPolicySpec.podSelector"},
    "rolebindings.rbac.authorization.k8s.io": {"Role": "V1RoleBinding.roleRef", **_BINDING},
    "clusterrolebindings.rbac.authorization.k8s.io": {
        "Role": "V1ClusterRoleBinding.roleRef",
        **_BINDING,
    },
    "leases.coordination.k8s.io": {"Holder": "V1LeaseSpec.holderIdentity"},
    "storageclasses.storage.k8s.io": {
        "Provisioner": "V1StorageClass.provisioner",
        "ReclaimPolicy": "V1StorageClass.reclaimPolicy",
        "VolumeBindingMode": "V1StorageClass.volumeBindingMode",
        "AllowVolumeExpansion": "V1StorageClass.allowVolumeExpansion",
    },
    "volumeattributesclasses.storage.k8s.io": {"DriverName": "V1VolumeAttributesClass.driverName"},
    "controllerrevisions.apps": {
        "Controller": "Controller of the object",
        "Revision": "V1ControllerRevision.revision",
    },
    "resourcequotas": {
        "Request": "Request represents a minimum amount of cpu/memory that a container "
        "may consume.",
        "Limit": "Limits control the maximum amount of cpu/memory that a container may use "
        "independent of contention on the node.",
    },
    "priorityclasses.scheduling.k8s.io": {
        "Value": "V1PriorityClass.value",
        "Global-Default": "V1PriorityClass.globalDefault",
        "PreemptionPolicy": "V1PriorityClass.preemptionPolicy",
    },
    "runtimeclasses.node.k8s.io": {"Handler": "V1RuntimeClass.handler"},
    "volumeattachments.storage.k8s.io": {
        "Attacher": "V1VolumeAttachmentSpec.attacher",
        "PV": "V1VolumeAttachmentSource.persistentVolumeName",
        "Node": "V1VolumeAttachmentSpec.nodeName",
        "Attached": "V1VolumeAttachmentStatus.attached",
    },
    "endpointslices.discovery.k8s.io": {
        "AddressType": "V1EndpointSlice.addressType",
        "Ports": "V1EndpointSlice.ports",
        "Endpoints": "V1EndpointSlice.endpoints",
    },
    "csinodes.storage.k8s.io": {
        "Drivers": "Drivers indicates the number of CSI drivers registered on the node"
    },
    "csidrivers.storage.k8s.io": {
        "AttachRequired": "V1CSIDriverSpec.attachRequired",
        "PodInfoOnMount": "V1CSIDriverSpec.podInfoOnMount",
        "StorageCapacity": "V1CSIDriverSpec.storageCapacity",
        "TokenRequests": "V1CSIDriverSpec.tokenRequests",
        "RequiresRepublish": "V1CSIDriverSpec.requiresRepublish",
        "Modes": "V1CSIDriverSpec.volumeLifecycleModes",
    },
    "csistoragecapacities.storage.k8s.io": {
        "StorageClassName": "V1CSIStorageCapacity.storageClassName",
        "Capacity": "V1CSIStorageCapacity.capacity",
    },
    "events": {
        "Last Seen": "V1Event.lastTimestamp",
        "Type": "V1Event.type",
        "Reason": "V1Event.reason",
        "Object": "V1Event.involvedObject",
        "Subobject": "V1ObjectReference.fieldPath",
        "Source": "V1Event.source",
        "Message": "V1Event.message",
        "First Seen": "V1Event.firstTimestamp",
        "Count": "V1Event.count",
    },
    "resourceclaims.resource.k8s.io": {
        "State": "A summary of the current state (allocated, pending, reserved, etc.)."
    },
    "resourceslices.resource.k8s.io": {
        "Node": "V1ResourceSliceSpec.nodeName",
        "Driver": "V1ResourceSliceSpec.driver",
        "Pool": "V1ResourcePool.name",
    },
}
_CONTROL_PLANE: Mapping[str, Mapping[str, str]] = {
    "apiservices.apiregistration.k8s.io": {
        "Service": "The reference to the service that hosts this API endpoint.",
        "Available": "Whether this service is available.",
    },
    "certificatesigningrequests.certificates.k8s.io": {
        "SignerName": "V1CertificateSigningRequestSpec.signerName",
        "Requestor": "V1CertificateSigningRequestSpec.request",
        "RequestedDuration": "V1CertificateSigningRequestSpec.expirationSeconds",
        "Condition": "V1CertificateSigningRequestStatus.conditions",
    },
    "ipaddresses.networking.k8s.io": {"ParentRef": "V1IPAddressSpec.parentRef"},
    "servicecidrs.networking.k8s.io": {"CIDRs": "V1ServiceCIDRSpec.cidrs"},
    "flowschemas.flowcontrol.apiserver.k8s.io": {
        "PriorityLevel": "V1FlowSchemaSpec.priorityLevelConfiguration",
        "MatchingPrecedence": "V1FlowSchemaSpec.matchingPrecedence",
        "DistinguisherMethod": "V1FlowSchemaSpec.distinguisherMethod",
        "MissingPL": "references a broken or non-existent PriorityLevelConfiguration",
    },
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": {
        "Type": "V1PriorityLevelConfigurationSpec.type",
        "NominalConcurrencyShares": "V1LimitedPriorityLevelConfiguration.nominalConcurrencyShares",
        "Queues": "V1QueuingConfiguration.queues",
        "HandSize": "V1QueuingConfiguration.handSize",
        "QueueLengthLimit": "V1QueuingConfiguration.queueLengthLimit",
    },
    **{
        f"{kind}webhookconfigurations.admissionregistration.k8s.io": {
            "Webhooks": "Webhooks indicates the total number of webhooks defined in this "
            "configuration"
        }
        for kind in ("mutating", "validating")
    },
    **{
        f"{kind.lower()}admissionpolicies.admissionregistration.k8s.io": {
            parts: f"{parts} indicates the number of {word} rules defined in this configuration",
            "ParamKind": f"V1{kind}AdmissionPolicySpec.paramKind",
        }
        for kind, parts, word in (
            ("Mutating", "Mutations", "mutation"),
            ("Validating", "Validations", "validation"),
        )
    },
    **{
        f"{kind.lower()}admissionpolicybindings.admissionregistration.k8s.io": {
            "PolicyName": f"V1{kind}AdmissionPolicyBindingSpec.policyName",
            "ParamRef": f"V1{kind}AdmissionPolicyBindingSpec.paramRef",
        }
        for kind in ("Mutating", "Validating")
    },
}
_MODELS = {"V1Event": "CoreV1Event"}


def description_of(collection: str, column: str) -> str:
    """The description of a kind's column; empty for a column nobody knows."""
    own = _BY_KIND.get(collection) or _CONTROL_PLANE.get(collection, {})
    text = own.get(column) or _ANY_KIND.get(column, "")
    field = _FIELD.fullmatch(text)
    return text if field is None else field_description(field[1], field[2])


def field_description(name: str, field: str) -> str:
    """What a field of a client model means; empty if there is no such field."""
    name = _MODELS.get(name, name)
    if not has_model(name):
        return ""
    described = model(name).schema["properties"].get(field, {})
    return str(described.get("description", ""))
