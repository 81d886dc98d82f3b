"""CustomResourceDefinitions: their defaults, their validation and the resources they define."""

from collections.abc import Iterator
from typing import Any

from simcluster.apiserver.errors import (
    FieldError,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)
from simcluster.crds import definition_parts as parts
from simcluster.crds.definition_rules import rule_errors, rule_text_errors
from simcluster.crds.selectable_paths import selectable_errors
from simcluster.crds.structure import root_errors, structure_errors
from simcluster.crds.version import CustomVersion
from simcluster.kinds.resources import Resource

Json = dict[str, Any]

ESTABLISHED = "Established"
_SCOPES = ("Cluster", "Namespaced")
_TYPES = ("array", "boolean", "integer", "number", "object", "string")


def set_definition_defaults(definition: Json) -> None:
    """Set default names, conversion and status."""
    spec = definition.setdefault("spec", {})
    names = spec.setdefault("names", {})
    if kind := names.get("kind"):
        if not names.get("singular"):
            names["singular"] = kind.lower()
        if not names.get("listKind"):
            names["listKind"] = f"{kind}List"
    spec.setdefault("conversion", {"strategy": "None"})
    stored = _storage_versions(spec)
    status = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}}
    definition.setdefault("status", {**status, "storedVersions": stored})


def _versions(spec: Json) -> list[Json]:
    found: list[Json] = spec.get("versions") or []
    return found


def validate_definition(definition: Json, old: Json | None = None) -> list[FieldError]:
    """Errors of a definition: its name, names, scope and versions with their schemas.

    Args:
        definition: the definition.
        old: the definition before a change.
    """
    spec = definition["spec"]
    names, group = spec["names"], spec.get("group") or ""
    errors: list[FieldError] = []
    name = definition["metadata"].get("name") or ""
    expected = f"{names.get('plural') or ''}.{group}"
    if name != expected:
        detail = 'must be spec.names.plural+"."+spec.group'
        errors.append(invalid_value("metadata.name", name, detail))
    errors += parts.group_errors(group)
    if spec.get("scope") not in _SCOPES:
        scope = spec.get("scope")
        field = "spec.scope"
        errors.append(unsupported_value(field, scope, _SCOPES) if scope else required(field))
    versions = _versions(spec)
    unchanged = _unchanged_versions(versions, old)
    errors += _version_errors(versions, unchanged)
    errors += parts.count_errors(spec.get("versions"))
    errors += parts.names_errors(names)
    schemas = [_schema_of(version) for version in versions]
    if parts.are_same(schemas) and schemas[0] is not None:
        # The internal version, which is validated, has the schema of all versions in one place.
        place, name = "spec.validation.openAPIV3Schema", versions[0].get("name")
        errors += _root_errors(schemas[0], place, is_unchanged=name in unchanged)
    errors += parts.part_errors(versions)
    errors += selectable_errors(versions)
    errors += parts.conversion_errors(spec)
    stored = _storage_versions(spec)
    if old is None:
        errors += parts.approval_errors(definition["metadata"], group)
    else:
        stored = (definition.get("status") or {}).get("storedVersions") or []
    return errors + list(parts.last_errors(definition, stored))


def _storage_versions(spec: Json) -> list[str]:
    return [found.get("name") or "" for found in _versions(spec) if found.get("storage")]


def _schema_of(version: Json) -> Json | None:
    schema: Json | None = (version.get("schema") or {}).get("openAPIV3Schema")
    return schema


def _unchanged_versions(versions: list[Json], old: Json | None) -> set[str]:
    """The names of the versions whose schemas are those before the change."""
    before = {
        found["name"]: _schema_of(found) for found in _versions((old or {}).get("spec") or {})
    }
    return {
        version["name"]
        for version in versions
        if version.get("name") in before and before[version["name"]] == _schema_of(version)
    }


def _root_errors(schema: Json, field: str, *, is_unchanged: bool) -> list[FieldError]:
    found = [*_schema_errors(schema, field, is_root=True), *root_errors(schema, field)]
    return found or list(rule_errors(schema, field, is_unchanged=is_unchanged))


def _version_errors(versions: list[Json], unchanged: set[str]) -> Iterator[FieldError]:
    schemas = [_schema_of(version) for version in versions]
    for index, schema in enumerate(schemas):
        if schema is None:
            yield required(f"spec.versions[{index}].schema.openAPIV3Schema")
    for index, version in enumerate(versions):
        field = f"spec.versions[{index}]"
        yield from parts.version_name_errors(f"{field}.name", version.get("name") or "")
        yield from parts.deprecation_errors(version, field)
        schema = schemas[index]
        if schema is not None and not parts.are_same(schemas):
            place = f"{field}.schema.openAPIV3Schema"
            yield from _root_errors(schema, place, is_unchanged=version["name"] in unchanged)


def _schema_errors(schema: Json, field: str, *, is_root: bool = False) -> Iterator[FieldError]:
    is_typeless = schema.get("x-kubernetes-int-or-string") or schema.get(
        "x-kubernetes-preserve-unknown-fields"
    )
    if not schema.get("type") and (is_root or not is_typeless):
        what = "at the root" if is_root else "for specified object fields"
        yield required(f"{field}.type", f"must not be empty {what}")
    elif schema.get("type") and schema["type"] not in _TYPES:
        yield unsupported_value(f"{field}.type", schema["type"], _TYPES)
    elif is_root and schema["type"] != "object":
        yield invalid_value(f"{field}.type", schema["type"], "must be object at the root")
    yield from structure_errors(schema, field)
    yield from rule_text_errors(schema, field)
    for name, inner in (schema.get("properties") or {}).items():
        if not (is_root and name in {"apiVersion", "kind", "metadata"}):
            yield from _schema_errors(inner, f"{field}.properties[{name}]")
    items = schema.get("items")
    if isinstance(items, dict):
        yield from _schema_errors(items, f"{field}.items")
    elif isinstance(items, list):
        why = "items must be a schema object and not an array"
        yield forbidden_field(f"{field}.items", why)
    elif schema.get("type") == "array":
        yield required(f"{field}.items", "must be specified")
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        yield from _schema_errors(others, f"{field}.additionalProperties")


def validate_definition_update(new: Json, old: Json) -> list[FieldError]:
    """Errors of a changed definition; group, scope, plural and kind are immutable."""
    errors = validate_definition(new, old)
    for keys in (("group",), ("scope",), ("names", "plural"), ("names", "kind")):
        before, after = old["spec"], new["spec"]
        for key in keys:
            before, after = before.get(key), after.get(key)
        if before != after:
            field = ".".join(("spec", *keys))
            errors.append(invalid_value(field, after, "field is immutable"))
    return errors


def is_established(definition: Json) -> bool:
    """Whether the resources of a definition are served."""
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(found["type"] == ESTABLISHED and found["status"] == "True" for found in conditions)


def resources_of(definition: Json) -> list[Resource]:
    """The served versions of a definition's resource."""
    return [
        _resource(definition, version)
        for version in _versions(definition["spec"])
        if version.get("served")
    ]


def _resource(definition: Json, version: Json) -> Resource:
    spec = definition["spec"]
    names, group = spec["names"], spec["group"]
    below = version.get("subresources") or {}
    storage = next(found["name"] for found in _versions(spec) if found.get("storage"))
    return Resource(
        group,
        version["name"],
        names["kind"],
        names["plural"],
        namespaced=spec["scope"] == "Namespaced",
        singular=names["singular"],
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=tuple(name for name in ("status", "scale") if name in below),
        has_generation=True,
        unconditional_update=False,
        list_kind=names["listKind"],
        storage_version=f"{group}/{storage}/{names['kind']}",
        custom=_custom_version(definition, version, below),
    )


def _custom_version(definition: Json, version: Json, below: Json) -> CustomVersion:
    return CustomVersion(
        definition["metadata"]["name"],
        version["schema"]["openAPIV3Schema"],
        tuple(version.get("additionalPrinterColumns") or ()),
        below.get("scale"),
        tuple(found["jsonPath"] for found in version.get("selectableFields") or ()),
        bool(definition["metadata"].get("deletionTimestamp")),
        _warning(definition["spec"], version),
    )


def _warning(spec: Json, version: Json) -> str:
    if not version.get("deprecated"):
        return ""
    api_version = f"{spec['group']}/{version['name']}"
    text = version.get("deprecationWarning")
    return str(text or f"{api_version} {spec['names']['kind']} is deprecated")
