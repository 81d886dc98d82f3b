"""Descriptions of built-in kinds and fields, read from the ``kubernetes`` client package.

Its models are generated from Kubernetes' own OpenAPI document. Their source is parsed on demand,
because importing several hundred pydantic classes is slow.
"""

import ast
import importlib.util
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

_FIELD = re.compile(r"(V\d\w+)\.(\w+)")
_PREFIXES = ("V2", "V1", "CoreV1", "RbacV1", "AuthenticationV1")


class Descriptions(NamedTuple):
    """The description of a type, and those of its fields."""

    text: str
    fields: Mapping[str, str]


@cache
def _sources() -> Mapping[str, Path]:
    """Source files by the names of their models in lower case."""
    spec = importlib.util.find_spec("kubernetes")
    if spec is None or not spec.submodule_search_locations:
        return {}
    folder = Path(spec.submodule_search_locations[0]) / "client" / "models"
    return {path.stem.replace("_", ""): path for path in folder.glob("*.py")}


def descriptions_of(type_name: str) -> Descriptions:
    """The descriptions of a type such as ``PodSpec`` or ``events.Event``."""
    group, found, kind = type_name.partition(".")
    candidates = (f"{group}V1{kind}",) if found else tuple(each + group for each in _PREFIXES)
    return next((_of_model(each) for each in candidates if each.lower() in _sources()), _NOTHING)


_NOTHING = Descriptions("", {})


@cache
def _of_model(name: str) -> Descriptions:
    body = ast.parse(_sources()[name.lower()].read_text(encoding="utf-8")).body
    model = next(
        each
        for each in body
        if isinstance(each, ast.ClassDef) and each.name.lower() == name.lower()
    )
    fields = dict(_field(each) for each in model.body if isinstance(each, ast.AnnAssign))
    text = (ast.get_docstring(model) or "").partition("Attributes:")[0].strip()
    return Descriptions("" if text == model.name else text, fields)


def _field(statement: ast.AnnAssign) -> tuple[str, str]:
    options: dict[str | None, str] = {}
    if isinstance(statement.value, ast.Call):
        options = {
            word.arg: str(word.value.value)
            for word in statement.value.keywords
            if isinstance(word.value, ast.Constant)
        }
    attribute = statement.target.id if isinstance(statement.target, ast.Name) else ""
    attribute = attribute.removeprefix("var_")
    # Two spaces stand for a new paragraph of the API's document.
    description = options.get("description", "").replace("  ", "\n\n")
    return options.get("serialization_alias", attribute), description


def field_description(text: str) -> str:
    """The description of a field such as ``V1PodStatus.podIP``; any other text as it is."""
    field = _FIELD.fullmatch(text)
    if field is None:
        return text
    name = "CoreV1Event" if field[1] == "V1Event" else field[1]
    return _of_model(name).fields.get(field[2], "") if name.lower() in _sources() else ""
