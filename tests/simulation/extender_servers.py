"""Extenders as programs: what each says to a question, rightly or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tests.simulation.extenders import is_lasting, refuses, score, spares
from tests.simulation.server import PODS, Json

if TYPE_CHECKING:
    from tests.simulation.network import Network

LATE_S = (0.5, 4.0)
"""How long after its asker has given up an extender binds a pod after all."""
LATE = "foreign"
"""Who binds then: it is not the scheduler's to answer for."""
_ERRORS = (404, 429, 500, 503)
_GARBAGE = (
    b"",
    b"[]",
    b"42",
    b'"no"',
    b"<html>",
    b'{"Error": 7}',
    b'{"NodeNames": "all", "NodeNameToMetaVictims": [], "Error": {}}',
    b'{"NodeNames": [1], "Nodes": {"items": [{}]}, "NodeNameToMetaVictims": {"x": 1}, "error": []}',
    b'[{"Host": "node-0", "Score": "high"}]',
    b'[{"Host": "node-0", "Score": 99999999999999999}]',
)


class Said(NamedTuple):
    """An answer."""

    status: int
    body: bytes


class ExtenderServer:
    """One extender.

    Args:
        config: As in the configuration.
        network: Where it is; its weather spoils what it says.
    """

    def __init__(self, config: Json, network: Network) -> None:
        self.name = config["urlPrefix"]
        self._config = config
        self._network = network

    def answer(self, verb: str, body: bytes, timeout_s: float, *, is_awaited: bool) -> Said | None:
        """What it says to a question; None if it thinks for longer than anybody waits.

        What it binds when nobody waits for it any more, it has to answer for itself.
        """
        network, question = self._network, msgspec.json.decode(body)
        if network.strikes("extender_error"):
            return Said(network.any_of(_ERRORS), b"out of order")
        if network.strikes("extender_says_no"):
            return _said({"Error": "not today"})
        if network.strikes("extender_lies"):
            return _said(self._lie(verb))
        if verb == "bind" and network.strikes("extender_late"):
            late_s = timeout_s + network.between(*LATE_S)
            network.loop.call_outside(late_s, self._bind, question, LATE)
            return None
        said = self._honest(verb, question, self.name if is_awaited else LATE)
        if network.strikes("extender_garbage"):
            return Said(200, network.any_of(_GARBAGE))
        return said

    def _honest(self, verb: str, question: Json, binder: str) -> Said:
        if verb == "bind":
            return _said(self._bind(question, binder))
        if verb == "preempt":
            return _said(self._review(question))
        names = _node_names(question)
        pod_name = question["Pod"]["metadata"]["name"]
        if verb == "prioritize":
            config = self._config
            return _said([{"Host": each, "Score": score(config, pod_name, each)} for each in names])
        return _said(self._filter(question, pod_name, names))

    def _filter(self, question: Json, pod_name: str, names: list[str]) -> Json:
        config = self._config
        refused = {name for name in names if refuses(config, pod_name, name)}
        lasting = {name for name in refused if is_lasting(config, pod_name, name)}
        nodes = (question["Nodes"] or {}).get("items", ())
        passed = [name for name in names if name not in refused]
        items = [node for node in nodes if node["metadata"]["name"] in passed]
        return {
            "NodeNames": passed if question["NodeNames"] is not None else None,
            "Nodes": {"items": items} if question["Nodes"] is not None else None,
            "FailedNodes": dict.fromkeys(sorted(refused - lasting), "not there"),
            "FailedAndUnresolvableNodes": dict.fromkeys(sorted(lasting), "never there"),
        }

    def _review(self, question: Json) -> Json:
        by_node = question["NodeNameToMetaVictims"]
        if by_node is None:
            by_node = {
                name: {
                    "Pods": [{"UID": pod["metadata"]["uid"]} for pod in victims["Pods"]],
                    "NumPDBViolations": victims["NumPDBViolations"],
                }
                for name, victims in question["NodeNameToVictims"].items()
            }
        left = {
            name: victims
            for name, victims in by_node.items()
            if not any(spares(self._config, victim["UID"]) for victim in victims["Pods"])
        }
        return {"NodeNameToMetaVictims": left}

    def _bind(self, question: Json, binder: str) -> Json:
        key = (question["PodNamespace"], question["PodName"])
        if self._network.weather.is_down:
            return {"Error": "the API server is away"}
        answer = self._network.server.bind(binder, key, question["Node"], question["PodUID"])
        return {"Error": "" if answer.status == 201 else answer.body["message"]}

    def _lie(self, verb: str) -> object:
        """In the right shape, about what is not there."""
        if verb == "prioritize":
            return [{"Host": "no-such-node", "Score": 10}]
        if verb == "preempt":
            names = sorted(name for _, name in self._network.server.collection(PODS))[:1]
            victims = {"Pods": [{"UID": "uid-nobody"}], "NumPDBViolations": -1}
            return self._network.any_of(
                ({}, {"NodeNameToMetaVictims": {"node-0": victims, **dict.fromkeys(names)}})
            )
        if verb == "bind":
            return {"Error": "bound, or so I believe"}
        stranger = {"items": [{"metadata": {"name": "no-such-node"}}]}
        return self._network.any_of(
            (
                {},
                {"NodeNames": ["no-such-node"], "Nodes": stranger},
                {"NodeNames": [], "Nodes": {"items": []}, "FailedNodes": {"no-such-node": "no"}},
            )
        )


def _node_names(question: Json) -> list[str]:
    if question["NodeNames"] is not None:
        return list(question["NodeNames"])
    return [node["metadata"]["name"] for node in question["Nodes"]["items"]]


def _said(answer: object) -> Said:
    return Said(200, msgspec.json.encode(answer))
