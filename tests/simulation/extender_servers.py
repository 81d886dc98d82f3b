"""Simulated extender servers: their answers, correct or faulty."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tests.simulation.extenders import is_unresolvable, refuses, score, spares
from tests.simulation.server import PODS, Json

if TYPE_CHECKING:
    from tests.simulation.network import Network

LATE_S = (0.5, 4.0)
"""How long after the timeout of the request a late extender binds the pod."""
LATE = "foreign"
"""The process that such a binding counts for, instead of the scheduler."""
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


class ExtenderResponse(NamedTuple):
    """The HTTP response of an extender."""

    status: int
    body: bytes


class ExtenderServer:
    """One extender.

    Args:
        config: Its entry in the configuration.
        network: Connects it; its fault rates decide about faulty answers.
    """

    def __init__(self, config: Json, network: Network) -> None:
        self.name = config["urlPrefix"]
        self._config = config
        self._network = network

    def answer(
        self, verb: str, body: bytes, timeout_s: float, *, is_awaited: bool
    ) -> ExtenderResponse | None:
        """The response to a request; None if it takes longer than the timeout.

        A binding that it makes after the timeout counts as its own, not as the scheduler's.
        """
        network, question = self._network, msgspec.json.decode(body)
        if network.injects("extender_error"):
            return ExtenderResponse(network.choose(_ERRORS), b"out of order")
        if network.injects("extender_failed"):
            return _ok({"Error": "internal error"})
        if network.injects("extender_wrong"):
            return _ok(self._wrong_answer(verb))
        if verb == "bind" and network.injects("extender_late"):
            late_s = timeout_s + network.between(*LATE_S)
            network.loop.call_outside(late_s, self._bind, question, LATE)
            return None
        response = self._correct_answer(verb, question, self.name if is_awaited else LATE)
        if network.injects("extender_garbage"):
            return ExtenderResponse(200, network.choose(_GARBAGE))
        return response

    def _correct_answer(self, verb: str, question: Json, binder: str) -> ExtenderResponse:
        if verb == "bind":
            return _ok(self._bind(question, binder))
        if verb == "preempt":
            return _ok(self._review(question))
        names = _node_names(question)
        pod_name = question["Pod"]["metadata"]["name"]
        if verb == "prioritize":
            config = self._config
            return _ok([{"Host": each, "Score": score(config, pod_name, each)} for each in names])
        return _ok(self._filter(question, pod_name, names))

    def _filter(self, question: Json, pod_name: str, names: list[str]) -> Json:
        config = self._config
        refused = {name for name in names if refuses(config, pod_name, name)}
        lasting = {name for name in refused if is_unresolvable(config, pod_name, name)}
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
        if self._network.fault_rates.is_down:
            return {"Error": "the API server is away"}
        answer = self._network.server.bind(binder, key, question["Node"], question["PodUID"])
        return {"Error": "" if answer.status == 201 else answer.body["message"]}

    def _wrong_answer(self, verb: str) -> object:
        """A well-formed answer about objects that do not exist."""
        if verb == "prioritize":
            return [{"Host": "no-such-node", "Score": 10}]
        if verb == "preempt":
            names = sorted(name for _, name in self._network.server.collection(PODS))[:1]
            victims = {"Pods": [{"UID": "uid-nobody"}], "NumPDBViolations": -1}
            return self._network.choose(
                ({}, {"NodeNameToMetaVictims": {"node-0": victims, **dict.fromkeys(names)}})
            )
        if verb == "bind":
            return {"Error": "unknown error"}
        stranger = {"items": [{"metadata": {"name": "no-such-node"}}]}
        return self._network.choose(
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


def _ok(answer: object) -> ExtenderResponse:
    return ExtenderResponse(200, msgspec.json.encode(answer))
