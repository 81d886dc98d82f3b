"""Reads the traits of an out-of-tree plugin, and refuses ones declared in the wrong place."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import Any

from stowage.framework.plugin_traits import PluginTraits, Reads
from stowage.framework.profile.registry import PluginUnusable

#: Attributes that declared a trait before there was `PluginTraits` -> the field of today.
_FORMER = {
    "per_demand": "reads_only_node_demand",
    "by_amounts": "reads_only_amounts",
    "reads_pods": "reads_placed_pods",
    "row_local": "filters_what_ifs",
    "refuses_per_class": "rejects_per_class",
}
_FIELD_OF: Mapping[str, str] = {
    **{each.name: each.name for each in fields(PluginTraits)},
    **_FORMER,
}


def declared_traits(authored: Any) -> PluginTraits:
    """The ``traits`` of a plugin; the defaults if it declares none.

    Raises:
        PluginUnusable: ``traits`` is no `PluginTraits`, or another attribute is one or is named
            like a trait: the framework would not read it.
    """
    traits = getattr(authored, "traits", PluginTraits())
    if not isinstance(traits, PluginTraits):
        raise PluginUnusable(f"its traits is {traits!r}, expected a PluginTraits")
    for name in dir(authored):
        value = inspect.getattr_static(authored, name)
        if isinstance(value, PluginTraits) and name != "traits":
            raise PluginUnusable(f"its {name} is a PluginTraits, expected the name traits")
        if isinstance(value, bool | Reads):
            for known in get_close_matches(name, _FIELD_OF, n=1, cutoff=0.8):
                declared = f"traits = PluginTraits({_FIELD_OF[known]}={value})"
                raise PluginUnusable(f"its {name} is not read, expected {declared}")
    return traits
