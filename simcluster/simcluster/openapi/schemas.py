"""OpenAPI schemas of types, named as in Kubernetes' own document."""

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from simcluster.kinds.resources import BUILT_IN
from simcluster.openapi.descriptions import descriptions_of
from simcluster.openapi.extensions import field_extensions
from simcluster.schema import ListType, MapType, Scalar, Struct, Type, struct_of, type_of_kind

Json = dict[str, Any]

META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_CORE = "io.k8s.api.core.v1."


class _Names(msgspec.Struct):
    """The content of ``schema_names.json``.

    Args:
        packages: packages of groups that are not below ``io.k8s.api``.
        meta: types of the package ``meta.v1``.
        objects: fields that hold an object of unknown type.
        scalars: schemas of scalars.
        named_scalars: names and schemas of scalars that have a schema of their own.
    """

    packages: dict[str, str]
    meta: frozenset[str]
    objects: frozenset[str]
    scalars: dict[str, Json]
    named_scalars: dict[str, tuple[str, Json]]


@cache
def _names() -> _Names:
    text = files("simcluster.openapi").joinpath("schema_names.json").read_bytes()
    return msgspec.json.decode(text, type=_Names)


def package_of(group: str, version: str) -> str:
    """The prefix of the schema names of a group and version: ``io.k8s.api.core.v1.``."""
    if found := _names().packages.get(group):
        return f"{found}.{version}."
    first, _, rest = group.partition(".")
    if not group or not rest or rest.endswith("k8s.io"):
        return f"io.k8s.api.{first or 'core'}.{version}."
    return ".".join((*reversed(group.split(".")), version, ""))


@cache
def _core_types() -> frozenset[str]:
    """The types that kinds of the core group consist of."""
    seen: set[str] = set()
    waiting = [type_of_kind("", found.kind) for found in BUILT_IN if not found.group]
    while waiting:
        struct = waiting.pop()
        if struct is not None and struct.name not in seen:
            seen.add(struct.name)
            waiting += [each for type_ in struct.fields.values() for each in _structs_in(type_)]
    return frozenset(seen)


def _structs_in(type_: Type) -> Iterator[Struct]:
    while isinstance(type_, ListType | MapType):
        type_ = type_.item if isinstance(type_, ListType) else type_.value
    if isinstance(type_, Struct):
        yield type_


class Schemas:
    """Collects the schemas of one document.

    Attributes:
        found: schemas by name.
    """

    def __init__(self) -> None:
        self.found: Json = {}

    def add(self, name: str) -> None:
        """Add a type of the package ``meta.v1`` and the types that it refers to."""
        struct = struct_of(name)
        if struct is not None:
            self.add_struct(struct, META)

    def add_struct(self, struct: Struct, package: str) -> str:
        """Add a type and the types that it refers to; returns the name of its schema."""
        kind = struct.name.rpartition(".")[2]
        name = f"{_CORE if struct.name in _core_types() else package}{kind}"
        if kind in _names().meta:
            name = f"{META}{kind}"
        if name not in self.found:
            self.found[name] = {}  # ends the recursion of types that contain themselves
            self.found[name] = self._object(struct, package)
        return name

    def _object(self, struct: Struct, package: str) -> Json:
        described = descriptions_of(struct.name)
        properties: Json = {}
        for field, type_ in struct.fields.items():
            schema = self._schema(type_, package)
            if f"{struct.name}.{field}" in _names().objects:
                schema = {"type": "object"}
            if "$ref" in schema:
                schema = {"allOf": [schema]}
            if text := described.fields.get(field):
                schema = {"description": text, **schema}
            properties[field] = {**schema, **field_extensions(struct, field)}
        schema = {"type": "object", "properties": properties}
        if described.text:
            schema = {"description": described.text, **schema}
        if struct.required:
            schema["required"] = sorted(struct.required)
        if struct.is_atomic:
            schema["x-kubernetes-map-type"] = "atomic"
        return schema

    def _schema(self, type_: Type, package: str) -> Json:
        if isinstance(type_, ListType):
            return {"type": "array", "items": self._schema(type_.item, package)}
        if isinstance(type_, MapType):
            values = self._schema(type_.value, package)
            return {"type": "object", **({"additionalProperties": values} if values else {})}
        if isinstance(type_, Scalar) and type_.kind in _names().scalars:
            return dict(_names().scalars[type_.kind])
        if isinstance(type_, Scalar):
            name, schema = _names().named_scalars[type_.kind]
            self.found[name] = schema
        else:
            name = self.add_struct(type_, package)
        return {"$ref": f"#/components/schemas/{name}"}
