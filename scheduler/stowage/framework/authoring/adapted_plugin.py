"""Plugins of one's own: from the class its author wrote to what the runner takes.

The author writes the methods that matter; what the protocols of `extension_points` want besides
is filled in here; a scalar method is asked about each node.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from stowage.api.status import SUCCESS, Status
from stowage.framework.authoring.checked_answers import checked, checked_registrations, unsortable
from stowage.framework.authoring.declared_traits import declared_traits
from stowage.framework.authoring.scalar import filter_each, score_each
from stowage.framework.cycle_state import CycleState
from stowage.framework.extension_points import Plugin
from stowage.framework.handle import Handle
from stowage.framework.plugin_traits import PluginTraits
from stowage.framework.profile.registry import NoArgs, PluginFactory, PluginUnusable
from stowage.framework.verdict import FilterVerdict, Int64Array
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView

#: Methods that make a plugin take part in an extension point.
_STEPS = (
    "pre_enqueue",
    "sort_key",
    "pre_filter",
    "filter",
    "post_filter",
    "pre_score",
    "score",
    "reserve",
    "unreserve",
    "permit",
    "pre_bind",
    "bind",
    "post_bind",
)
_COMPANIONS = ("normalize_score", "pre_bind_pre_flight", "events_to_register")


class PluginArgs(msgspec.Struct, rename="camel"):
    """Base of a plugin's ``Args``: fields in snake_case here, in camelCase in the configuration.

    Every field has a default. A method ``validate()`` may yield a `ConfigError` for each value
    out of bounds, with the path below the args.
    """


class AdaptedPlugin:
    """A plugin with all that the runner asks for.

    Attributes:
        name: The plugin's name.
        authored: What its author wrote.
        traits: What its author promises.

    Raises:
        PluginUnusable: It has no name, takes part in no extension point, or has a method that is
            a coroutine where it must not be, or none where it must; or its traits are declared in
            the wrong way.
    """

    def __init__(self, authored: Any) -> None:
        self.name: str = _name_of(authored)
        self.authored = authored
        self.traits = _traits_of(authored)
        # In the instance's own dictionary, where runtime-checkable protocols look for them.
        vars(self).update(_members(authored))


def plugin_factory(
    made_by: Callable[..., Any], *, name: str | None = None, handle: Handle | None = None
) -> PluginFactory:
    """A registry's entry for a plugin of one's own.

    Args:
        made_by: The plugin's class. Its constructor may have a parameter ``args``, which takes a
            value of the struct that the class names ``Args``, and a parameter ``handle``. A
            function with these parameters and an attribute ``Args`` will do as well.
        name: What configurations call it; None takes the class's ``name``.
        handle: Given to a constructor that wants it.

    Raises:
        PluginUnusable: The constructor, the ``Args`` or the name are not as described.
    """
    args = _args_of(made_by)
    parameters = _parameters_of(made_by)
    if ("args" in parameters) != (args is not NoArgs):
        raise PluginUnusable("expected a parameter args and an attribute Args, or neither of them")
    offered = Handle() if handle is None else handle
    wanted = name if name is not None else _name_of(made_by)
    _check_name(getattr(made_by, "name", wanted), wanted)

    def construct(value: Any) -> Plugin:
        given = {"args": value, "handle": offered}
        try:
            authored = made_by(**{each: given[each] for each in parameters})
        except (Exception, SystemExit) as problem:
            text = f"its constructor raised {type(problem).__name__}: {problem}"
            raise PluginUnusable(text) from problem
        plugin = AdaptedPlugin(authored)
        _check_name(plugin.name, wanted)
        return plugin

    return PluginFactory(wanted, construct, args)


def _members(authored: Any) -> dict[str, Any]:
    """The plugin's methods by the names of the protocols, completed."""
    found = {
        method: getattr(authored, method)
        for method in (*_SCALAR, *_STEPS, *_COMPANIONS)
        if hasattr(authored, method)
    }
    _check(found)
    for method, (vectorised, run) in _SCALAR.items():
        if method in found:
            found.setdefault(vectorised, partial(run, found.pop(method)))
    for method, companion, default in _DEFAULTS:
        if method in found:
            found.setdefault(companion, default)
    return found | _guarded(found)


def _traits_of(authored: Any) -> PluginTraits:
    traits = declared_traits(authored)
    if hasattr(authored, "filter_node") and not (
        hasattr(authored, "filter") or hasattr(authored, "pre_filter")
    ):
        # `filter_node` gets the node and its pods as the view has them, changed or not.
        traits = replace(traits, filters_what_ifs=True)
    return traits


def _guarded(members: Mapping[str, Any]) -> dict[str, Any]:
    """The methods again, so that no answer of theirs can harm more than the pod it is about."""
    guarded = {name: checked(name, method) for name, method in members.items()}
    if "sort_key" in members:
        guarded["unsortable"] = partial(unsortable, members["sort_key"])
    if "events_to_register" in members:
        registered = checked_registrations(members["events_to_register"])
        guarded["events_to_register"] = lambda: registered
    return guarded


def _check(members: dict[str, Any]) -> None:
    if not any(step in members for step in (*_SCALAR, *_STEPS)):
        raise PluginUnusable(
            "it takes part in no extension point, expected at least one of the methods "
            f"{', '.join((*_SCALAR, *_STEPS))}"
        )
    for member, value in members.items():
        if not callable(value):
            raise PluginUnusable(f"its {member} is {value!r}, expected a method")
        if inspect.iscoroutinefunction(value) != (member == "pre_bind"):
            expected = "async def" if member == "pre_bind" else "def; only pre_bind is async"
            raise PluginUnusable(f"its {member} is of the wrong kind, expected {expected}")


def _args_of(made_by: Any) -> type[msgspec.Struct]:
    args = getattr(made_by, "Args", NoArgs)
    if not (isinstance(args, type) and issubclass(args, msgspec.Struct)):
        raise PluginUnusable(f"its Args is {args!r}, expected a subclass of PluginArgs")
    for field in msgspec.structs.fields(args):
        if field.required:
            raise PluginUnusable(f"its Args has no default for {field.name}, expected one")
    return args


def _parameters_of(made_by: Any) -> list[str]:
    """Which of ``args`` and ``handle`` its constructor takes."""
    if not callable(made_by):
        raise PluginUnusable(f"it is {made_by!r}, expected a class")
    known = []
    for parameter in inspect.signature(made_by).parameters.values():
        if parameter.name in ("args", "handle"):
            known.append(parameter.name)
        elif parameter.default is parameter.empty and parameter.kind not in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        ):
            text = f"its constructor wants {parameter.name}"
            raise PluginUnusable(f"{text}, expected no other parameters than args and handle")
    return known


def _check_name(name: object, wanted: str) -> None:
    if isinstance(name, str) and name != wanted:
        raise PluginUnusable(f"it calls itself {name!r}, expected name = {wanted!r}")


def _name_of(authored: Any) -> str:
    name = getattr(authored, "name", None)
    if not isinstance(name, str) or not name:
        raise PluginUnusable(f"its name is {name!r}, expected text")
    return name


def _filter(
    filter_node: Callable[..., Any], _state: CycleState, pod: PodInfo, nodes: NodeView
) -> FilterVerdict:
    return filter_each(filter_node, pod, nodes)


def _score(
    score_node: Callable[..., Any], _state: CycleState, pod: PodInfo, nodes: NodeView
) -> Int64Array:
    return score_each(score_node, pod, nodes)


def _agree(_state: CycleState, _pod: PodInfo, _node_name: str) -> Status:
    return SUCCESS


def _give_nothing_back(_state: CycleState, _pod: PodInfo, _node_name: str) -> None:
    """There is nothing to give back."""


#: Scalar method -> the vectorised one it stands for, and how that is made of it.
_SCALAR: Mapping[str, tuple[str, Callable[..., Any]]] = {
    "filter_node": ("filter", _filter),
    "score_node": ("score", _score),
}

#: (method, what its protocol wants besides, what that is if the author does not say).
_DEFAULTS: tuple[tuple[str, str, Any], ...] = (
    ("reserve", "unreserve", _give_nothing_back),
    ("unreserve", "reserve", _agree),
    ("pre_bind", "pre_bind_pre_flight", _agree),
)
