"""Admission of pods by their ServiceAccount: its name, its token volume, its image pull secrets."""

from simcluster.apiserver.errors import forbidden
from simcluster.kinds.resources import PODS, SERVICE_ACCOUNTS
from simcluster.store.object_meta import name_suffix
from simcluster.store.store import Store
from simcluster.values import Json

_DEFAULT = "default"
_MIRROR = "kubernetes.io/config.mirror"
_VOLUME_PREFIX = "kube-api-access-"
_MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_TOKEN_SECONDS = 3607
_AUTHORITY = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
_NAMESPACE = {
    "path": "namespace",
    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
}


def admit_service_account(store: Store, pod: Json) -> None:
    """Give a pod the ServiceAccount of its namespace, and what that one brings.

    Raises:
        ApiError: 403, there is no such account.
    """
    metadata, spec = pod["metadata"], pod["spec"]
    if _MIRROR in (metadata.get("annotations") or {}):
        return
    name, namespace = spec.get("serviceAccountName") or _DEFAULT, metadata["namespace"]
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    account = store.get(SERVICE_ACCOUNTS.stored_in, namespace, name)
    if account is None:
        why = f'{namespace}/{name}: serviceaccount "{name}" not found'
        what = f"error looking up service account {why}"
        raise forbidden(PODS, metadata.get("name", ""), what)
    if _mounts_token(spec, account.obj):
        _mount_token(spec)
    if not spec.get("imagePullSecrets") and account.obj.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [dict(secret) for secret in account.obj["imagePullSecrets"]]


def _mounts_token(spec: Json, account: Json) -> bool:
    for holder in (spec, account):
        if (asked := holder.get("automountServiceAccountToken")) is not None:
            return bool(asked)
    return True


def _mount_token(spec: Json) -> None:
    volumes = spec.get("volumes") or []
    names = [volume.get("name") or "" for volume in volumes]
    present = next((name for name in names if name.startswith(_VOLUME_PREFIX)), "")
    volume_name = present or _VOLUME_PREFIX + name_suffix()
    needs_volume = False
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        mounts = container.get("volumeMounts") or []
        if all(mount.get("mountPath") != _MOUNT_PATH for mount in mounts):
            mount = {"name": volume_name, "readOnly": True, "mountPath": _MOUNT_PATH}
            container["volumeMounts"] = [*mounts, mount]
            needs_volume = True
    if needs_volume and not present:
        spec["volumes"] = [*volumes, {"name": volume_name, "projected": _token_sources()}]


def _token_sources() -> Json:
    token = {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}
    return {
        "sources": [
            {"serviceAccountToken": token},
            {"configMap": _AUTHORITY},
            {"downwardAPI": {"items": [_NAMESPACE]}},
        ],
        "defaultMode": 420,
    }
