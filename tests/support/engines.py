"""Engines for stories: the default profile, ties broken as the story wants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from msgspec import convert
from stowage.api.config.extenders import NO_EXTENDERS, Extenders
from stowage.api.config.loading import KubeSchedulerProfile
from stowage.engine import Engine, Journal, make_engine
from stowage.framework import Framework, Registry, build_profile
from stowage.plugins import in_tree_registry

T = TypeVar("T")

#: The profile of most stories: the default plugins, for pods that name no scheduler.
DEFAULT_PROFILE: Mapping[str, Any] = {"schedulerName": "default-scheduler"}


def default_engine(
    choose: Callable[[int], int] = lambda _num_ties: 0,
    *,
    profile: Mapping[str, Any] = DEFAULT_PROFILE,
    registry: Registry | None = None,
    journal: Journal | None = None,
    extenders: Extenders = NO_EXTENDERS,
) -> Engine:
    """An engine with one profile around an empty cache."""
    config = convert(profile, KubeSchedulerProfile)
    framework = Framework(build_profile(config, registry or in_tree_registry()))
    return make_engine([framework], choose, journal=journal, extenders=extenders)


def of_type(kind: type[T], instructions: Iterable[object]) -> list[T]:
    """The instructions of one kind, in order."""
    return [each for each in instructions if isinstance(each, kind)]
