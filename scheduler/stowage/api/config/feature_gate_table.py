"""The feature gates that kube-scheduler v1.36 knows, with their stages and defaults.

Most of them concern other components: kube-scheduler accepts them all, so that one value of
``--feature-gates`` serves a whole control plane.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum

import msgspec


class Stage(StrEnum):
    """Stage of a gate, named as in the metric ``kubernetes_feature_enabled``."""

    ALPHA = "ALPHA"
    BETA = "BETA"
    GA = ""
    DEPRECATED = "DEPRECATED"


class FeatureGate(msgspec.Struct, frozen=True):
    """A known gate.

    Attributes:
        name: Its name in ``--feature-gates``.
        stage: Its stage in v1.36.
        default: Its value unless a flag sets it.
        locked: Whether the flag may only set it to its default.
    """

    name: str
    stage: Stage
    default: bool
    locked: bool = False


_ALPHA_OFF = """
APIServingWithRoutine AllowUnsafeMalformedObjectDeletion CBORServingAndStorage
CPUManagerPolicyAlphaOptions CRIListStreaming CSIVolumeHealth ClientsAllowCBOR ClientsPreferCBOR
CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook
ContainerStopSignals ControllerManagerReleaseLeaderElectionLockOnExit
CrossNamespaceVolumeDataSource DRAListTypeAttributes DRANodeAllocatableResources
DRAResourcePoolStatus DRAWorkloadResourceClaims EventedPLEG GangScheduling GenericWorkload
HPAScaleToZero ImageVolumeWithDigest InPlacePodVerticalScalingExclusiveCPUs
InPlacePodVerticalScalingExclusiveMemory KubeletInUserNamespace LoggingAlphaOptions
ManifestBasedAdmissionControlConfig MemoryQoS MutablePVNodeAffinity NativeHistograms
PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI PodLevelResourceManagers
PodLogsQuerySplitStreams PodsAPI QOSReserved ReduceDefaultCrashLoopBackOffDecay
RuntimeClassInImageCriApi ShardedListAndWatch StorageCapacityScoring StorageVersionAPI
TaintTolerationComparisonOperators TopologyAwareWorkloadScheduling
TopologyManagerPolicyAlphaOptions UserNamespacesHostNetworkSupport VolumeLimitScaling
WindowsCPUAndMemoryAffinity WorkloadAwarePreemption WorkloadWithJob
"""

_BETA_OFF = """
ClusterTrustBundle ClusterTrustBundleProjection ConcurrentWatchObjectDecode
CoordinatedLeaderElection DRADeviceTaintRules LocalStorageCapacityIsolationFSQuotaMonitoring
MaxUnavailableStatefulSet PodCertificateRequest SELinuxMount SchedulerAsyncAPICalls
StorageVersionMigrator
"""

_BETA_ON = """
APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth AtomicFIFO
AuthorizePodWebsocketUpgradeCreatePermission CPUManagerPolicyBetaOptions
CRDObservedGenerationTracking ClearingNominatedNodeNameAfterBinding ClientsAllowCARotation
ClientsAllowTLSCacheGC ComponentFlagz ComponentStatusz ConstrainedImpersonation
ContainerCheckpoint ContainerRestartRules ContextualLogging DRAConsumableCapacity
DRADeviceBindingConditions DRADeviceTaints DRAExtendedResource DRAPartitionableDevices
DRAResourceClaimDeviceStatus DRAResourceClaimGranularStatusAuthorization
DRASchedulerFilterTimeout DeclarativeValidationBeta DeploymentReplicaSetTerminatingReplicas
DetectCacheInconsistency EnvFiles ExtendWebSocketsToKubelet GracefulNodeShutdown
GracefulNodeShutdownBasedOnPodPriority HPAConfigurableTolerance HostnameOverride
InOrderInformersBatchProcess InPlacePodLevelResourcesVerticalScaling
InPlacePodVerticalScalingInitContainers KubeletCrashLoopBackOffMax
KubeletEnsureSecretPulledImages KubeletSeparateDiskGC
KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot LoggingBetaOptions
MatchLabelKeysInPodTopologySpread MatchLabelKeysInPodTopologySpreadSelectorMerge
MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs
NodeDeclaredFeatures NominatedNodeNameForExpectation OpenAPIEnums OpportunisticBatching
PLEGOnDemandRelist PodDeletionCost PodLevelResources PodReadyToStartContainersCondition
PodTopologyLabelsAdmission PortForwardWebsockets PreventStaticPodAPIReferences
RelaxedServiceNameValidation ReloadKubeletClientCAFile ReloadKubeletServerCertificateFile
RemoteRequestHeaderUID ResourceHealthStatus ResourceHealthStatusMessage
RestartAllContainersOnContainerExits RotateKubeletServerCertificate SchedulerAsyncPreemption
SchedulerPopFromBackoffQ ServiceAccountNodeAudienceRestriction SizeBasedListCostEstimate
StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob
StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet
StatefulSetSemanticRevisionComparison StorageVersionHash StrictIPCIDRValidation
StructuredAuthenticationConfigurationEgressSelector
StructuredAuthenticationConfigurationJWKSMetrics TokenRequestServiceAccountUIDValidation
TopologyManagerPolicyBetaOptions TranslateStreamCloseWebsocketRequests
UnauthenticatedHTTP2DOSMitigation UnknownVersionInteroperabilityProxy
UnlockWhileProcessingFIFO WatchCacheInitializationPostStartHook WatchList WatchListClient
WindowsGracefulNodeShutdown
"""

_GA_LOCKED = """
APIServerTracing AnonymousAuthConfigurableEndpoints AnyVolumeDataSource
AuthorizeNodeWithSelectors AuthorizeWithSelectors BtreeWatchCache CPUManagerPolicyOptions
CRDValidationRatcheting CSIServiceAccountTokenSecrets ConsistentListFromCache
CustomResourceFieldSelectors DRAAdminAccess DisableAllocatorDualWrite DynamicResourceAllocation
ExecProbeTimeout HonorPVReclaimPolicy ImageMaximumGCAge InPlacePodVerticalScaling
JobBackoffLimitPerIndex JobManagedBy JobPodReplacementPolicy JobSuccessPolicy
KubeletCgroupDriverFromCRI KubeletFineGrainedAuthz KubeletTracing LogarithmicScaleDown
MatchLabelKeysInPodAffinity MultiCIDRServiceAllocator NFTablesProxyMode
NodeInclusionPolicyInPodTopologySpread NodeSwap OrderedNamespaceDeletion PodLifecycleSleepAction
PodLifecycleSleepActionAllowZero PodObservedGenerationTracking PodSchedulingReadiness
PreferSameTrafficDistribution RecoverVolumeExpansionFailure RecursiveReadOnlyMounts
RelaxedDNSSearchValidation RelaxedEnvironmentVariableValidation
ResilientWatchCacheInitialization RetryGenerateName SchedulerQueueingHints
SeparateTaintEvictionController ServiceAccountTokenJTI ServiceAccountTokenNodeBinding
ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo SidecarContainers
StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf
StructuredAuthenticationConfiguration SupplementalGroupsPolicy SystemdWatchdog
TopologyManagerPolicyOptions VolumeAttributesClass WinDSR WinOverlay
"""

_GA_ON = """
CustomCPUCFSQuotaPeriod DRAPrioritizedList DeclarativeValidation DisableCPUQuotaWithExclusiveCPUs
ExternalServiceAccountTokenSigner ImageVolume InOrderInformers InformerResourceVersion KubeletPSI
KubeletPodResourcesDynamicResources KubeletPodResourcesGet MutableCSINodeAllocatableCount
MutatingAdmissionPolicy NodeLogQuery ProcMountType SELinuxChangePolicy
SELinuxMountReadWriteOncePod UserNamespacesSupport
"""

_DEPRECATED_OFF = """
AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests
ChangeContainerStatusOnKubeletRestart DeclarativeValidationTakeover GitRepoVolumeDriver
InPlacePodVerticalScalingAllocatedStatus KMSv1 KubeletRegistrationGetOnExistsOnly
SeparateCacheWatchRPC WindowsHostNetwork
"""

_DEPRECATED_ON = """
DisableNodeKubeProxyVersion KubeletPodResourcesListUseActivePods StorageNamespaceIndex
"""

ALL_ALPHA = "AllAlpha"
ALL_BETA = "AllBeta"


def _gates() -> Iterator[FeatureGate]:
    yield FeatureGate(ALL_ALPHA, Stage.ALPHA, default=False)
    yield FeatureGate(ALL_BETA, Stage.BETA, default=False)
    yield FeatureGate("AggregatedDiscoveryRemoveBetaType", Stage.DEPRECATED, True, True)
    yield FeatureGate("AllowOverwriteTerminationGracePeriodSeconds", Stage.DEPRECATED, False, True)
    for names, stage, default, locked in (
        (_ALPHA_OFF, Stage.ALPHA, False, False),
        (_BETA_OFF, Stage.BETA, False, False),
        (_BETA_ON, Stage.BETA, True, False),
        (_GA_LOCKED, Stage.GA, True, True),
        (_GA_ON, Stage.GA, True, False),
        (_DEPRECATED_OFF, Stage.DEPRECATED, False, False),
        (_DEPRECATED_ON, Stage.DEPRECATED, True, False),
    ):
        for name in names.split():
            yield FeatureGate(name, stage, default, locked)


KNOWN_GATES: Mapping[str, FeatureGate] = {gate.name: gate for gate in _gates()}
"""Every known gate by its name."""

DEPENDENCIES: Mapping[str, tuple[str, ...]] = {
    "ClusterTrustBundleProjection": ("ClusterTrustBundle",),
    "DRADeviceBindingConditions": ("DRAResourceClaimDeviceStatus",),
    "DRADeviceTaintRules": ("DRADeviceTaints",),
    "DRAWorkloadResourceClaims": ("GenericWorkload",),
    "GangScheduling": ("GenericWorkload",),
    "GracefulNodeShutdownBasedOnPodPriority": ("GracefulNodeShutdown",),
    "ImageVolumeWithDigest": ("ImageVolume",),
    "InPlacePodLevelResourcesVerticalScaling": ("PodLevelResources", "NodeDeclaredFeatures"),
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": ("MatchLabelKeysInPodTopologySpread",),
    "ProcMountType": ("UserNamespacesSupport",),
    "ResourceHealthStatusMessage": ("ResourceHealthStatus",),
    "RestartAllContainersOnContainerExits": ("ContainerRestartRules", "NodeDeclaredFeatures"),
    "StorageVersionAPI": ("APIServerIdentity",),
    "TopologyAwareWorkloadScheduling": ("GenericWorkload",),
    "UnknownVersionInteroperabilityProxy": ("APIServerIdentity",),
    "UserNamespacesHostNetworkSupport": ("UserNamespacesSupport",),
    "WindowsGracefulNodeShutdown": ("GracefulNodeShutdown",),
    "WorkloadAwarePreemption": ("GangScheduling",),
    "WorkloadWithJob": ("GenericWorkload",),
}
"""Gate -> the gates that must be on while it is on; gates that are locked on are left out."""
