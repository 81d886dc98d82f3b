"""The schemas of built-in kinds, read from the models of the ``kubernetes`` client package.

The package is a dependency anyway and its models are made from Kubernetes' own OpenAPI document:
field names, types, which are required, and what they mean. Their source is parsed, field by field
and only where asked for, instead of importing several hundred pydantic classes.
"""

import ast
import importlib.util
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast

Json = dict[str, Any]

QUANTITY = "Quantity"
INT_OR_STRING = "IntOrString"
TIME = "Time"
MICRO_TIME = "MicroTime"
_TYPES: Mapping[str, Json] = {
    "StrictStr": {"type": "string"},
    "StrictBool": {"type": "boolean"},
    "StrictInt": {"type": "integer"},
    "StrictFloat": {"type": "number", "format": "double"},
    "Any": {},
    "object": {"type": "object"},
}
_QUANTITY_MAPS = frozenset(
    [
        "allocatable",
        "allocatedResources",
        "capacity",
        "default",
        "defaultRequest",
        "hard",
        "limits",
        "max",
        "maxLimitRequestRatio",
        "min",
        "overhead",
        "requests",
        "used",
    ]
)
_QUANTITIES = frozenset(("divisor", "sizeLimit", "maximumVolumeSize"))
_MICRO_TIMES = frozenset(("acquireTime", "renewTime", "eventTime", "lastObservedTime"))
_NEWER = frozenset((("V1PodSpec", "evictionResponders"),))
"""Fields of the package's release that v1.36 does not have yet."""


class Model(NamedTuple):
    """One model: its schema and the models it refers to; references are bare model names."""

    schema: Json
    references: frozenset[str]


@cache
def _sources() -> Mapping[str, Path]:
    """Files of the package by what their names say, without underscores."""
    spec = importlib.util.find_spec("kubernetes")
    if spec is None or not spec.submodule_search_locations:
        return {}
    folder = Path(spec.submodule_search_locations[0]) / "client" / "models"
    return {path.stem.replace("_", ""): path for path in folder.glob("*.py")}


def has_model(name: str) -> bool:
    """Whether there is such a model."""
    return name.lower() in _sources()


@cache
def model(name: str) -> Model:
    """The model of a class name, such as ``V1PodSpec``.

    Raises:
        KeyError: there is none.
    """
    text = _sources()[name.lower()].read_text(encoding="utf-8")
    start = text.index(f"class {name}(BaseModel):")
    declaration = text[start : text.index("    openapi_types: ClassVar", start)]
    body = cast("ast.ClassDef", ast.parse(declaration).body[0])
    properties: Json = {}
    required: list[str] = []
    references: set[str] = set()
    for field in _fields(body):
        if (name, field.name) in _NEWER:
            continue
        properties[field.name] = _schema(field, references)
        if not field.is_optional:
            required.append(field.name)
    schema: Json = {"type": "object", "properties": properties}
    if description := _description(body):
        schema = {"description": description, **schema}
    if required:
        schema["required"] = sorted(required)
    return Model(schema, frozenset(references))


class _Field(NamedTuple):
    name: str
    annotation: ast.expr
    is_optional: bool
    description: str


def _fields(body: ast.ClassDef) -> Iterator[_Field]:
    for statement in body.body:
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        options = {}
        if isinstance(statement.value, ast.Call):
            options = {word.arg: word.value for word in statement.value.keywords}
        name = _text(options.get("serialization_alias")) or statement.target.id
        annotation, is_optional = statement.annotation, "default" in options
        if isinstance(annotation, ast.Subscript) and _name(annotation.value) == "Optional":
            annotation, is_optional = annotation.slice, True
        yield _Field(name, annotation, is_optional, _text(options.get("description")))


def _text(node: ast.expr | None) -> str:
    """A string; two spaces are where the API's own document begins a new paragraph."""
    return str(node.value).replace("  ", "\n\n") if isinstance(node, ast.Constant) else ""


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _description(body: ast.ClassDef) -> str:
    text = (ast.get_docstring(body) or "").partition("Attributes:")[0].strip()
    return "" if text == body.name else text


def _schema(field: _Field, references: set[str]) -> Json:
    schema = _of_annotation(field.annotation, field.name, references)
    if "$ref" in schema:
        schema = {"allOf": [schema]}
    if field.description:
        schema = {"description": field.description, **schema}
    return schema


def _of_annotation(node: ast.expr, field: str, references: set[str]) -> Json:
    if isinstance(node, ast.BinOp):
        return _of_union(_alternatives(node), references)
    if isinstance(node, ast.Subscript):
        return _of_generic(node, field, references)
    name = _name(node)
    if name == "datetime":
        return _reference(MICRO_TIME if field in _MICRO_TIMES else TIME, references)
    if name == "StrictStr" and field in _QUANTITIES:
        return _reference(QUANTITY, references)
    if name in _TYPES:
        return dict(_TYPES[name])
    return _reference(name, references)


def _of_generic(node: ast.Subscript, field: str, references: set[str]) -> Json:
    outer, inner = _name(node.value), node.slice
    if outer == "List":
        items = _of_annotation(inner, field, references)
        return {"type": "array", "items": items}
    if outer == "Dict" and isinstance(inner, ast.Tuple):
        if field in _QUANTITY_MAPS and _name(inner.elts[1]) == "StrictStr":
            return {"type": "object", "additionalProperties": _reference(QUANTITY, references)}
        values = _of_annotation(inner.elts[1], field, references)
        return {"type": "object", "additionalProperties": values} if values else {"type": "object"}
    if outer == "Union" and isinstance(inner, ast.Tuple):
        return _of_union(inner.elts, references)
    return {"type": "string", "format": "byte"}


def _alternatives(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        return [*_alternatives(node.left), *_alternatives(node.right)]
    return [node]


def _of_union(alternatives: list[ast.expr], references: set[str]) -> Json:
    names = {_name(node) for node in alternatives}
    if names == {"StrictInt", "StrictStr"}:
        return _reference(INT_OR_STRING, references)
    if names == {"StrictInt", "StrictFloat"}:
        return {"type": "number", "format": "double"}
    if "" in names and any(isinstance(node, ast.Subscript) for node in alternatives):
        is_bytes = all(
            _name(node.value) == "Annotated"
            for node in alternatives
            if isinstance(node, ast.Subscript)
        )
        return {"type": "string", "format": "byte"} if is_bytes else {}
    return {}


def _reference(name: str, references: set[str]) -> Json:
    references.add(name)
    return {"$ref": name}


_FIELD = re.compile(r"(V\d\w+)\.(\w+)")
_RENAMED = {"V1Event": "CoreV1Event"}


def field_description(text: str) -> str:
    """The description of a field such as ``V1PodStatus.podIP``; any other text as it is."""
    field = _FIELD.fullmatch(text)
    if field is None:
        return text
    name = _RENAMED.get(field[1], field[1])
    if not has_model(name):
        return ""
    described = model(name).schema["properties"].get(field[2], {})
    return str(described.get("description", ""))
