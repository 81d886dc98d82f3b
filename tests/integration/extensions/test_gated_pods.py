"""The message of a PreEnqueue plugin in the condition of the pod, over HTTP."""

from __future__ import annotations

from typing import Any

from simcluster.tests.support.api_client import ApiClient
from simcluster.tests.support.api_servers import ApiServerUnderTest
from stowage.api.status import SUCCESS, unresolvable
from stowage.framework import plugin_factory
from stowage.framework.authoring import PluginTraits, PodInfo, Status
from tests.integration.scheduling.cluster import Cluster
from tests.support.integration.running_scheduler import CONFIGURATION, running_scheduler

Json = dict[str, Any]


class OwnerRequired:
    """Gates pods without the label ``owner``."""

    name = "OwnerRequired"
    traits = PluginTraits(pre_enqueue_per_class=True, reports_gated_pods=True)

    def pre_enqueue(self, pod: PodInfo) -> Status:
        return SUCCESS if "owner" in pod.labels else unresolvable("the label owner is missing")


ENABLED = {"multiPoint": {"enabled": [{"name": "OwnerRequired"}]}}
WITH_PLUGIN = {
    **CONFIGURATION,
    "profiles": [{"schedulerName": "stowage", "plugins": ENABLED}],
}


def _condition(pod: Json) -> Json:
    found = pod["status"].get("conditions") or ()
    return next((each for each in found if each["type"] == "PodScheduled"), {})


async def test_a_gated_pod_says_why_and_scheduling_gates_keep_their_condition(
    api_server: ApiServerUnderTest, api: ApiClient
) -> None:
    cluster = Cluster(api)
    await cluster.add_node("n")
    gates = [{"name": "example.com/hold"}]
    plugins = (plugin_factory(OwnerRequired),)
    async with running_scheduler(api_server.kubeconfig, WITH_PLUGIN, plugins):
        await cluster.create("held", schedulingGates=gates)
        held = await cluster.pod("held")
        await cluster.create("p")
        pod = await cluster.seen("p", lambda pod: bool(_condition(pod)))
        condition = _condition(pod)
        assert (condition["status"], condition["reason"], condition["message"]) == (
            "False",
            "SchedulingGated",
            "the label owner is missing",
        )
        assert condition["lastTransitionTime"]
        assert _condition(await cluster.pod("held")) == _condition(held)
        await cluster.label("p", {"owner": "me"})
        assert await cluster.node_of("p") == "n"
        await cluster.open_gate("held")
        pod = await cluster.seen(
            "held", lambda pod: _condition(pod).get("message") == "the label owner is missing"
        )
        assert _condition(pod)["reason"] == "SchedulingGated"
