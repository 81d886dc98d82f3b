"""Adapts out-of-tree plugins to the protocols of `extension_points`.

The author writes the methods of the policy. The adapter adds the other members that the protocols
require, wraps scalar methods into vectorised ones, and checks answers.
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
from stowage.framework.authoring.reported_exceptions import ReportException, reported
from stowage.framework.authoring.scalar import filter_each, score_each
from stowage.framework.cycle_state import CycleState
from stowage.framework.extension_points import EventRegistration, Plugin
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


def _report_nothing(_plugin: str, _point: str, _error: Exception) -> None:
    """Default of `AdaptedPlugin`: the exceptions are errors of pods only."""


class AdaptedPlugin:
    """An out-of-tree plugin with all members that the runtime expects.

    Args:
        authored: The author's object.
        report: Receives the exceptions of its methods.

    Attributes:
        name: The plugin's name.
        authored: The author's object.
        traits: The plugin's traits.

    Raises:
        PluginUnusable: The plugin has no name, takes part in no extension point, declares its
            traits wrongly, or mixes up coroutines and plain methods.
    """

    def __init__(self, authored: Any, report: ReportException = _report_nothing) -> None:
        self.name: str = _name_of(authored)
        self.authored = authored
        self.traits = _traits_of(authored)
        # In the instance's own dictionary, where runtime-checkable protocols look for them.
        vars(self).update(_members(authored, partial(reported, self.name, report=report)))


def plugin_factory(
    made_by: Callable[..., Any], *, name: str | None = None, handle: Handle | None = None
) -> PluginFactory:
    """The registry entry of an out-of-tree plugin.

    Args:
        made_by: The plugin's class. Its constructor may have a parameter ``args``, which takes a
            value of the class's struct ``Args``, and a parameter ``handle``. A function with these
            parameters and an attribute ``Args`` is accepted as well.
        name: The name in configurations; None takes the class's ``name``.
        handle: Passed to a constructor with that parameter.

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
        plugin = AdaptedPlugin(authored, offered.report_exception)
        _check_name(plugin.name, wanted)
        return plugin

    return PluginFactory(wanted, construct, args)


def _members(authored: Any, report: Callable[..., Any]) -> dict[str, Any]:
    """The members of the plugin by the names of the protocols, missing ones added."""
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
    return found | _guarded(found, report)


def _traits_of(authored: Any) -> PluginTraits:
    traits = declared_traits(authored)
    if hasattr(authored, "filter_node") and not (
        hasattr(authored, "filter") or hasattr(authored, "pre_filter")
    ):
        # `filter_node` gets the node and its pods as the view has them, changed or not.
        traits = replace(traits, filters_what_ifs=True)
    return traits


def _guarded(members: Mapping[str, Any], report: Callable[..., Any]) -> dict[str, Any]:
    """The methods with checked answers: a wrong one is an error of the pod it is about."""
    guarded = {name: report(name, checked(name, method)) for name, method in members.items()}
    if "sort_key" in members:
        # The checked sort_key never raises; `unsortable` returns what the author's raises.
        guarded["unsortable"] = partial(unsortable, report("sort_key", members["sort_key"]))
    if "events_to_register" in members:
        registered = tuple(
            _with_reported_hint(each, report)
            for each in checked_registrations(members["events_to_register"])
        )
        guarded["events_to_register"] = lambda: registered
    return guarded


def _with_reported_hint(
    registration: EventRegistration, report: Callable[..., Any]
) -> EventRegistration:
    if registration.hint is None:
        return registration
    hint = report("queueing_hint", registration.hint)
    return msgspec.structs.replace(registration, hint=hint)


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
    """The parameters ``args`` and ``handle`` that the constructor has."""
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


def _succeed(_state: CycleState, _pod: PodInfo, _node_name: str) -> Status:
    return SUCCESS


def _do_nothing(_state: CycleState, _pod: PodInfo, _node_name: str) -> None:
    """Default of ``unreserve``."""


#: Scalar method -> the vectorised method it replaces, and the function that adapts it.
_SCALAR: Mapping[str, tuple[str, Callable[..., Any]]] = {
    "filter_node": ("filter", _filter),
    "score_node": ("score", _score),
}

#: (method, another member that its protocol requires, the default of that member).
_DEFAULTS: tuple[tuple[str, str, Any], ...] = (
    ("reserve", "unreserve", _do_nothing),
    ("unreserve", "reserve", _succeed),
    ("pre_bind", "pre_bind_pre_flight", _succeed),
)
