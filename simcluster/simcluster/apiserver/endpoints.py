"""Answers requests on objects, collections and subresources, except lists and watches.

A request is handled without interruption, so that writes are atomic without locks. Only the
deletion of a collection yields to other requests.
"""

import asyncio
import contextlib
from functools import partial
from typing import Any

from simcluster.apiserver import errors
from simcluster.apiserver.bodies import (
    apply_type_of,
    check_options,
    read_delete_options,
    read_object,
    read_part,
)
from simcluster.apiserver.event_conversion import to_core, to_events_v1
from simcluster.apiserver.list_options import (
    check_list_options,
    completed,
    is_set,
    parse_list_options,
)
from simcluster.apiserver.listing import Page, list_page
from simcluster.apiserver.messages import Answer, ApiRequest, check_shape
from simcluster.apiserver.negotiation import negotiate
from simcluster.apiserver.node_connections import check_log, not_connected, object_behind
from simcluster.apiserver.paths import Review, Target
from simcluster.auth.access import Access
from simcluster.auth.request_attributes import attributes_of
from simcluster.auth.reviews import review
from simcluster.auth.users import name_requester
from simcluster.kinds.admission.devices import claim_status_errors
from simcluster.kinds.resources import (
    CERTIFICATE_SIGNING_REQUESTS,
    CONNECTIONS,
    EVENTS_V1,
    RESOURCE_CLAIMS,
    SCALES,
    Resource,
)
from simcluster.kinds.subresources.binding import bind
from simcluster.kinds.subresources.eviction import evict
from simcluster.kinds.subresources.scale import scale_of, set_scale
from simcluster.kinds.warnings import warnings_on_create, warnings_on_update
from simcluster.patch.apply import Recorder, Writer, record_create, record_update
from simcluster.patch.apply.field_sets import MissingKeyError
from simcluster.patch.requests import (
    APPLY_PATCH,
    Patched,
    PatchRequest,
    apply_object,
    apply_scale,
    check_content_type,
    check_patched,
    decode_patch,
    patch_object,
    patched,
)
from simcluster.store.deletion import DeleteOptions, options_of_query, parse_delete_options
from simcluster.store.managed_fields import ManagedFields
from simcluster.store.registry import WHOLE_OBJECT_SUBRESOURCES, Registry, StatusCheck, WriteOptions
from simcluster.store.store import Stored, encode
from simcluster.validation.events import validate_event_of_new_api

Json = dict[str, Any]

DELETIONS_PER_TURN = 100
_PARTS = {
    "binding": ("Binding", ("v1",)),
    "eviction": ("Eviction", ("policy/v1", "policy/v1beta1")),
    "token": ("TokenRequest", ("authentication.k8s.io/v1",)),
    "scale": ("Scale", ("autoscaling/v1",)),
}
"""The kind that each subresource takes, and its versions."""


_DEPRECATED = {
    "endpoints": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    "componentstatuses": "v1 ComponentStatus is deprecated in v1.19+",
}


def deprecation(resource: Resource) -> tuple[str, ...]:
    """The warning of answers that carry a deprecated version, if it is one."""
    text = resource.custom.warning if resource.custom else _DEPRECATED.get(resource.qualified, "")
    return (text,) if text else ()


_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}


def check_verb(method: str, target: Target, content_type: str = "") -> None:
    """Refuse verbs that a resource does not offer, such as the deletion of all namespaces.

    Raises:
        ApiError: 405; 400, an update or a patch of a collection of custom resources; 415, a patch
            of an unknown kind of one.
    """
    verb = _VERBS.get(method)
    if target.resource.custom is not None:
        _check_custom_verb(verb, target, content_type)
        return
    if not target.name and method == "DELETE":
        verb = "deletecollection"
    everywhere = target.resource.namespaced and target.namespace is None
    if (
        verb is None
        or (not target.subresource and verb not in target.resource.verbs)
        or (verb == "deletecollection" and everywhere)
    ):
        raise errors.method_not_allowed()


def _check_custom_verb(verb: str | None, target: Target, content_type: str) -> None:
    if verb is None or (target.subresource and verb not in {"get", "patch", "update"}):
        raise errors.method_not_supported(target.resource, verb or "")
    if not target.name and verb in {"patch", "update"}:
        if verb == "patch":
            check_content_type(target.resource, content_type)
        raise errors.bad_request("name must be provided")


class Endpoints:
    """Every verb on objects, collections and subresources.

    Args:
        registry: the objects.
        access: answers reviews.
    """

    def __init__(self, registry: Registry, access: Access) -> None:
        self._registry = registry
        self._access = access

    def handle(self, request: ApiRequest, target: Target | Review) -> Answer:
        """Answer a request.

        Raises:
            ApiError: it is refused.
        """
        if isinstance(target, Review):
            return self._handle_review(request, target)
        check_verb(request.method, target, request.content_type)
        if target.subresource not in CONNECTIONS:
            negotiate(request.accept)
        if target.subresource and target.subresource not in WHOLE_OBJECT_SUBRESOURCES:
            return self._handle_subresource(request, target)
        verbs = {"GET": self._get, "PUT": self._update, "PATCH": self._patch}
        if not target.name:
            verbs = {"POST": self._create}
        elif not target.subresource:
            verbs["DELETE"] = self._delete
            if target.resource.custom is not None:
                verbs["POST"] = self._create  # of the object in the body
        if request.method not in verbs:
            raise errors.method_not_allowed()
        return verbs[request.method](request, target)

    def _handle_review(self, request: ApiRequest, target: Review) -> Answer:
        if request.method != "POST":
            raise errors.method_not_allowed()
        if target.plural == "bindings":
            body = self._part(request, "binding")
            name = (body.get("metadata") or {}).get("name", "")
            return self._bind(request, target.namespace, name, body)
        versions = (f"{target.group}/{target.version}",)
        body = read_part(request.body, request.content_type, target.kind, versions)
        now = self._registry.clock.now()
        return Answer(201, encode(review(target, body, request.user, self._access, now)))

    def _create(self, request: ApiRequest, target: Target) -> Answer:
        resource, namespace = target.resource, target.namespace or ""
        if resource.namespaced and target.namespace is None:
            raise errors.method_not_allowed()
        check_options(request.query, "CreateOptions")
        obj, warnings = self._read(request, resource)
        if resource is EVENTS_V1 and (found := validate_event_of_new_api(obj)):
            raise errors.invalid_object(
                resource, (obj.get("metadata") or {}).get("name", ""), found
            )
        if resource is CERTIFICATE_SIGNING_REQUESTS:
            name_requester(obj, request.user)
        stored = self._registry.create(resource, namespace, obj, self._options(request, target))
        warnings += warnings_on_create(resource, stored.obj)
        return self._one(request, resource, stored, 201).warning(warnings)

    @staticmethod
    def _read(request: ApiRequest, resource: Resource) -> tuple[Json, tuple[str, ...]]:
        obj, warnings = read_object(request.body, request.content_type, resource, request.directive)
        return (to_core(obj) if resource is EVENTS_V1 else obj), warnings

    def _writer(self, request: ApiRequest, target: Target) -> Writer:
        resource = target.resource
        return Writer(
            request.manager,
            resource.api_version,
            target.subresource,
            # The API server records no time of a change of the scale.
            "" if target.subresource == "scale" else self._registry.clock.now(),
            resource.has_status,
            resource.custom is not None,
        )

    def _options(self, request: ApiRequest, target: Target) -> WriteOptions:
        options = WriteOptions(request.is_dry_run, self._recorder(request, target))
        if target.resource is not RESOURCE_CLAIMS or target.subresource != "status":
            return options
        return options._replace(status_errors=self._claim_status_check(request))

    def _claim_status_check(self, request: ApiRequest) -> StatusCheck:
        """Checks that a user may write what a change to a claim's status changes."""
        verb, access, store = _VERBS[request.method], self._access, self._registry.store

        def authorize(verb: str, subresource: str, name: str) -> str:
            asked = attributes_of(request.method, request.path, request.query)
            is_cluster_wide = subresource == "binding"
            namespace = "" if is_cluster_wide else asked.namespace
            asked = asked._replace(
                verb=verb, subresource=subresource, name=name, namespace=namespace
            )
            return access.refusal(request.user, asked)

        return lambda new, old: claim_status_errors(store, new, old, verb, authorize)

    def _recorder(self, request: ApiRequest, target: Target) -> Recorder:
        """Computes the managedFields of the written object."""
        struct = apply_type_of(target.resource)
        shown = to_events_v1 if target.resource is EVENTS_V1 else _as_stored

        def record(
            obj: Json, before: Json | None, managed_fields: ManagedFields | None
        ) -> ManagedFields | None:
            writer = self._writer(request, target)
            # An object without the keys of its lists is not tracked; validation comes later.
            with contextlib.suppress(MissingKeyError):
                if before is None:
                    return record_create(shown(obj), struct, writer)
                if managed_fields is not None:
                    old, new = shown(before), shown(obj)
                    return record_update(new, old, struct, writer, managed_fields)
            return managed_fields

        return record

    @staticmethod
    def _one(request: ApiRequest, resource: Resource, stored: Stored, status: int = 200) -> Answer:
        check_shape(resource, request.accept, is_list=False)
        body = request.format_for(resource).one(stored)
        return Answer(status, body, 0, deprecation(resource))

    def _get(self, request: ApiRequest, target: Target) -> Answer:
        _check_no_export(request.query.get("export"))
        stored = self._registry.get(target.resource, target.namespace or "", target.name)
        return self._one(request, target.resource, stored)

    def _update(self, request: ApiRequest, target: Target) -> Answer:
        resource, namespace = target.resource, target.namespace or ""
        check_options(request.query, "UpdateOptions")
        obj, warnings = self._read(request, resource)
        options = self._options(request, target)
        if target.subresource:
            self._registry.check_address(resource, namespace, target.name, obj)
            current = self._registry.get(resource, namespace, target.name)
            replace = self._registry.replacement(target.subresource)
            stored = replace(resource, current, obj, options)
            return self._one(request, resource, stored).warning(warnings)
        before = self._registry.store.get(resource.stored_in, namespace, target.name)
        stored, is_created = self._registry.update(resource, namespace, target.name, obj, options)
        if before is not None:
            warnings += warnings_on_update(resource, stored.obj, before.obj)
        answer = self._one(request, resource, stored, 201 if is_created else 200)
        return answer.warning(warnings)

    def _patch(self, request: ApiRequest, target: Target) -> Answer:
        resource, address = target.resource, (target.namespace or "", target.name)
        check_content_type(resource, request.content_type)
        patch = self._patch_request(request, target)
        done = self._patched(request, resource, address, patch)
        answer = self._one(request, resource, done.stored, 201 if done.is_created else 200)
        return answer.warning(done.warnings)

    def _patch_request(self, request: ApiRequest, target: Target) -> PatchRequest:
        """The patch in a request.

        Raises:
            ApiError: 422, an option is unknown or missing.
        """
        check_options(request.query, "PatchOptions")
        is_apply = request.content_type == APPLY_PATCH
        if is_apply and not request.query.get("fieldManager"):
            error = errors.required("fieldManager", "is required for apply patch")
            raise errors.invalid("meta.k8s.io", "PatchOptions", "", [error])
        return PatchRequest(
            request.content_type,
            request.body,
            partial(self._writer, request, target),
            target.subresource,
            request.directive,
            is_set(request.query.get("force")),
            self._options(request, target),
        )

    def _patched(
        self, request: ApiRequest, resource: Resource, address: tuple[str, str], patch: PatchRequest
    ) -> Patched:
        if patch.content_type != APPLY_PATCH:
            _check_no_force(request)
            current = self._registry.get(resource, *address)
            return patch_object(self._registry, resource, current, patch)
        found = self._registry.store.get(resource.stored_in, *address)
        if found is None and patch.subresource:
            raise errors.not_found(resource, address[1])
        return apply_object(self._registry, resource, address, found, patch)

    def _delete(self, request: ApiRequest, target: Target) -> Answer:
        resource = target.resource
        options = self._delete_options(request)
        last, is_gone = self._registry.delete(
            resource, target.namespace or "", target.name, options
        )
        if resource.plural == "pods" or not is_gone:
            status = 202 if options.is_cascade_asked_for and not is_gone else 200
            return self._one(request, resource, last, status)
        details: Json = {"name": target.name}
        if resource.group:
            details["group"] = resource.group
        details |= {"kind": resource.plural, "uid": last.obj["metadata"]["uid"]}
        return Answer(200, encode(errors.success(details)))

    @staticmethod
    def _delete_options(request: ApiRequest) -> DeleteOptions:
        """The options of a deletion: those in its body, or else those in its query."""
        if request.body:
            return parse_delete_options(read_delete_options(request.body, request.content_type))
        return parse_delete_options(options_of_query(request.query))

    async def delete_collection(self, request: ApiRequest, target: Target) -> Page:
        """Delete the objects that the query lists, a few at a time; returns them as they were.

        Raises:
            ApiError: the request is refused, and nothing is deleted.
        """
        resource, query = target.resource, request.query
        request.format_for(resource)  # refuses formats that are not available
        listed = completed(parse_list_options(query))
        check_list_options(listed)
        options = self._delete_options(request)
        store = self._registry.store
        page = await list_page(store, resource, target.namespace, listed)
        for position, stored in enumerate(page.items):
            if position % DELETIONS_PER_TURN == DELETIONS_PER_TURN - 1:
                await asyncio.sleep(0)
            if store.get(resource.stored_in, stored.namespace, stored.name) is not None:
                self._registry.delete(resource, stored.namespace, stored.name, options)
        return page

    def _handle_subresource(self, request: ApiRequest, target: Target) -> Answer:
        namespace, name = target.namespace or "", target.name
        if target.subresource == "scale":
            return self._scale(request, target)
        if target.subresource == "log" and request.method == "GET":
            pod = self._registry.get(target.resource, namespace, name).obj
            check_log(pod, request.query)
            # The kubelet simulation has no logs; an unscheduled pod has no kubelet.
            status = 200 if pod["spec"].get("nodeName") else 204
            return Answer(status, b"", 0, content_type="text/plain")
        if target.subresource in CONNECTIONS:
            raise self._not_connected(request, target)
        if target.subresource == "finalize" and request.method == "PUT":
            return self._finalize(request, target)
        if request.method != "POST":
            raise errors.method_not_allowed()
        body = self._part(request, target.subresource)
        if target.subresource == "token":
            account = self._registry.get(target.resource, namespace, name)
            return Answer(201, encode(self._access.tokens.answer(account, body)))
        if target.subresource == "eviction":
            return Answer(201, encode(self._evict(request, namespace, name, body)))
        if (body.get("metadata") or {}).get("name", name) != name:
            raise errors.bad_request("name in URL does not match name in Binding object")
        return self._bind(request, namespace, name, body)

    def _bind(self, request: ApiRequest, namespace: str, name: str, body: Json) -> Answer:
        bound = bind(self._registry, namespace, name, body, dry_run=request.is_dry_run)
        return Answer(201, encode(bound))

    @staticmethod
    def _part(request: ApiRequest, subresource: str) -> Json:
        if subresource not in _PARTS:
            raise errors.method_not_allowed()
        return read_part(request.body, request.content_type, *_PARTS[subresource])

    def _evict(self, request: ApiRequest, namespace: str, name: str, body: Json) -> Json:
        if request.is_dry_run:
            body["deleteOptions"] = {**(body.get("deleteOptions") or {}), "dryRun": ["All"]}
        return evict(self._registry, namespace, name, body)

    def _not_connected(self, request: ApiRequest, target: Target) -> errors.ApiError:
        """The error of a connection: no kubelet listens, so no pod or node can be reached.

        Raises:
            ApiError: 404, there is no such object.
        """
        name = target.name
        if target.subresource == "proxy":
            name = object_behind(name)
        stored = self._registry.get(target.resource, target.namespace or "", name)
        return not_connected(
            target.resource.plural,
            stored.obj,
            target.name,
            subresource=target.subresource,
            upgrades=request.upgrades,
        )

    def _finalize(self, request: ApiRequest, target: Target) -> Answer:
        """Set a namespace's ``spec.finalizers``; a terminating namespace without any is removed."""
        current = self._registry.get(target.resource, "", target.name)
        body = read_part(request.body, request.content_type, "Namespace", ("v1",))
        spec = body.get("spec") or {}
        obj = {**current.obj, "spec": spec}
        if not spec.get("finalizers") and current.obj["metadata"].get("deletionTimestamp"):
            last = self._registry.store.remove(target.resource.stored_in, current)
        else:
            last = self._registry.store.put(target.resource.stored_in, obj)
        return self._one(request, target.resource, last)

    def _scale(self, request: ApiRequest, target: Target) -> Answer:
        resource = target.resource
        if request.method == "PATCH":
            check_content_type(resource, request.content_type)
        current = self._registry.get(resource, target.namespace or "", target.name)
        if request.method == "GET":
            return self._one_scale(request, resource, current)
        if request.content_type == APPLY_PATCH and request.method == "PATCH":
            applied = self._patch_request(request, target)
            changed = apply_scale(self._registry, resource, current, applied)
            return self._one_scale(request, resource, changed)
        if request.method == "PUT":
            scale = self._part(request, "scale")
        elif request.method == "PATCH":
            _check_no_force(request)
            patch = decode_patch(request.content_type, request.body)
            scale = patched(scale_of(resource, current), request.content_type, patch, None)
            check_patched(scale, "Scale")
        else:
            raise errors.method_not_allowed()
        self._registry.check_address(resource, target.namespace or "", target.name, scale)
        options = self._options(request, target)
        changed = set_scale(self._registry, resource, current, scale, options)
        return self._one_scale(request, resource, changed)

    def _one_scale(self, request: ApiRequest, resource: Resource, stored: Stored) -> Answer:
        scale = scale_of(resource, stored)
        shown = {key: scale[key] for key in ("metadata", "spec", "status")}
        return self._one(request, SCALES, Stored(shown, stored.revision))


def _as_stored(obj: Json) -> Json:
    return obj


def _check_no_export(flag: str | None) -> None:
    """Refuse the removed ``export`` parameter."""
    if is_set(flag):
        raise errors.bad_request(
            "the export parameter, deprecated since v1.14, is no longer supported"
        )


def _check_no_force(request: ApiRequest) -> None:
    if "force" in request.query:
        error = errors.forbidden_field("force", "may not be specified for non-apply patch")
        raise errors.invalid("meta.k8s.io", "PatchOptions", "", [error])
