"""Compiles the JSON paths of printer columns and scale subresources."""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

_TOKEN = re.compile(
    r"""
    \.(?P<field>(?:[^.\[\]'"\\]|\\.)+)
    | \[(?P<quote>['"])(?P<quoted>.*?)(?P=quote)\]
    | \[(?P<index>-?\d+)\]
    | (?P<every>\[\*\]|\.\*)
    | \[\?\(@(?P<left>[^=!<>]+?)\s*(?P<operator>==|!=)\s*(?P<right>[^)]+)\)\]
    """,
    re.VERBOSE,
)

Step = Callable[[Any], Iterable[Any]]


class JsonPathError(ValueError):
    """A path is malformed."""


def _field(name: str) -> Step:
    def step(value: Any) -> Iterable[Any]:
        return (value[name],) if isinstance(value, dict) and name in value else ()

    return step


def _index(position: int) -> Step:
    def step(value: Any) -> Iterable[Any]:
        if isinstance(value, list) and -len(value) <= position < len(value):
            return (value[position],)
        return ()

    return step


def _every(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else ()


def _filter(left: str, operator: str, right: str) -> Step:
    wanted = right.strip().strip("'\"")
    find = compile_path(left)

    def step(value: Any) -> Iterable[Any]:
        items = value if isinstance(value, list) else ()
        return [item for item in items if (wanted in map(_plain, find(item))) is (operator == "==")]

    return step


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


@lru_cache(maxsize=1024)
def compile_path(text: str) -> Callable[[Any], list[Any]]:
    """Compile a path such as ``.status.conditions[?(@.type=="Ready")].status``.

    Returns:
        A function that finds the values at the path, in order.

    Raises:
        JsonPathError: the path is malformed.
    """
    steps = _steps(text.strip())

    def find(value: Any) -> list[Any]:
        found = [value]
        for step in steps:
            found = [inner for outer in found for inner in step(outer)]
        return found

    return find


def _steps(text: str) -> list[Step]:
    steps: list[Step] = []
    position = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            raise JsonPathError(f"{text!r} is no JSON path: unexpected {text[position:]!r}")
        steps.append(_step(token))
        position = token.end()
    return steps


def _step(token: re.Match[str]) -> Step:
    if token["every"]:
        return _every
    if token["index"]:
        return _index(int(token["index"]))
    if token["left"]:
        return _filter(token["left"], token["operator"], token["right"])
    name = token["field"] if token["field"] is not None else token["quoted"]
    return _field(re.sub(r"\\(.)", r"\1", name))
