"""Extender configurations, and the decisions of each extender when it works correctly."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

from tests.simulation.objects import GADGET
from tests.simulation.server import Json

MAX_EXTENDERS = 3
TIMEOUTS = ("500ms", "1s", "3s")
PICKY, RATER, GUARD, BINDER = "picky", "rater", "guard", "binder"
"""Kinds: filters and scores nodes; only scores them; reviews victims; binds."""
_VERBS: dict[str, Json] = {
    PICKY: {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 2},
    RATER: {"prioritizeVerb": "prioritize", "weight": 5},
    GUARD: {"preemptVerb": "preempt"},
    BINDER: {"bindVerb": "bind"},
}


def draw_extenders(rng: random.Random, wanted: Iterable[str] = ()) -> list[Json]:
    """Draw the extenders of a configuration.

    Args:
        rng: Draws them.
        wanted: Kinds that are always included, and not ignorable.
    """
    kinds = list(wanted)
    if not kinds and rng.random() < 0.5:
        kinds = rng.sample(sorted(_VERBS), rng.randint(1, MAX_EXTENDERS))
    extenders = [_draw_extender(rng, kind) for kind in kinds]
    for extender in extenders if wanted else ():
        extender["ignorable"] = False
    if extenders and not wanted and rng.random() < 0.5:
        resource = {"name": GADGET, "ignoredByScheduler": True}
        rng.choice(extenders)["managedResources"] = [resource]
    return extenders


def is_interested(extender: Json, pod: Json) -> bool:
    """Whether an extender is interested in a pod."""
    if "managedResources" not in extender:
        return True
    return any(GADGET in each["resources"]["requests"] for each in pod["spec"]["containers"])


def refused_by(extenders: Sequence[Json], pod: Json, node_name: str) -> list[str]:
    """The URL of an extender that refuses a node for a pod."""
    return [
        extender["urlPrefix"]
        for extender in extenders
        if "filterVerb" in extender
        and is_interested(extender, pod)
        and refuses(extender, pod["metadata"]["name"], node_name)
    ]


def refuses(extender: Json, pod_name: str, node_name: str) -> bool:
    """Whether an extender refuses a node for a pod of that name; it never refuses probe pods."""
    return not pod_name.startswith("probe") and _draw(extender, pod_name, node_name) % 4 == 0


def is_unresolvable(extender: Json, pod_name: str, node_name: str) -> bool:
    """Whether the extender reports the refusal as unresolvable by preemption."""
    return _draw(extender, pod_name, node_name) % 8 == 0


def score(extender: Json, pod_name: str, node_name: str) -> int:
    """The extender's score of a node for a pod, at most 10."""
    return _draw(extender, pod_name, node_name) % 11


def spares(extender: Json, uid: str) -> bool:
    """Whether the extender refuses the eviction of a pod."""
    return _draw(extender, uid) % 4 == 0


def _draw_extender(rng: random.Random, kind: str) -> Json:
    return {
        "urlPrefix": f"http://{kind}",
        "httpTimeout": rng.choice(TIMEOUTS),
        "ignorable": rng.random() < 0.4,
        "nodeCacheCapable": rng.random() < 0.5,
        **_VERBS[kind],
    }


def _draw(extender: Json, *names: Any) -> int:
    # Unlike `hash`, this is the same in every process.
    return zlib.crc32("/".join((extender["urlPrefix"], *names)).encode()) >> 3
