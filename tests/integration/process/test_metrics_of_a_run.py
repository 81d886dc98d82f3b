"""What happens to pods is counted on the metrics page of the scheduler that did it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from simcluster.ports import reserved_port
from simcluster.tests.support.api_client import ApiClient
from simcluster.tests.support.api_servers import ApiServerUnderTest
from simcluster.tests.support.timeouts import wait_until
from stowage.operator.decisions.log_files import DecisionLogOptions
from stowage.operator.lease import LeaderElectionOptions
from stowage.operator.run_options import RecordingOptions
from stowage.operator.serving.delegated_access import AccessOptions
from stowage.operator.serving.server import ServingOptions
from stowage.recording.limits import RecordingLimits
from tests.integration.scheduling.cluster import Cluster
from tests.support.integration.running_scheduler import running_scheduler

GATE = "example.com/quota"
#: What a run counts whose four pods are one that fits, one gated, one whose node does not exist,
#: and one that takes the place of the first.
WANTED = {
    'leader_election_master_status{name="stowage"}': 1,
    'rest_client_transport_create_calls_total{result="miss"}': 1,
    'scheduler_cache_size{type="assumed_pods"}': 0,
    'scheduler_cache_size{type="nodes"}': 1,
    'scheduler_cache_size{type="pods"}': 1,
    "scheduler_framework_extension_point_duration_seconds_count"
    '{extension_point="Bind",profile="stowage",status="Success"}': 2,
    'scheduler_pending_pods{queue="active"}': 0,
    'scheduler_pending_pods{queue="gated"}': 1,
    'scheduler_pending_pods{queue="unschedulable"}': 1,
    "scheduler_pod_scheduling_attempts_count": 2,
    "scheduler_pod_scheduling_attempts_sum": 3,
    'scheduler_pod_scheduling_sli_duration_seconds_count{attempts="1"}': 1,
    'scheduler_pod_scheduling_sli_duration_seconds_count{attempts="2"}': 1,
    'scheduler_preemption_goroutines_duration_seconds_count{result="success"}': 1,
    'scheduler_preemption_goroutines_execution_total{result="success"}': 1,
    "scheduler_preemption_attempts_total": 2,
    "scheduler_preemption_victims_sum": 1,
    'scheduler_queue_incoming_pods_total{event="UnschedulablePodAdd",queue="active"}': 3,
    'scheduler_queue_incoming_pods_total{event="ScheduleAttemptFailure",queue="unschedulable"}': 2,
    'scheduler_schedule_attempts_total{profile="stowage",result="scheduled"}': 2,
    'scheduler_schedule_attempts_total{profile="stowage",result="unschedulable"}': 2,
    "scheduler_scheduling_algorithm_duration_seconds_count": 4,
    'scheduler_scheduling_attempt_duration_seconds_count{profile="stowage",result="scheduled"}': 2,
    'scheduler_unschedulable_pods{plugin="NodeAffinity",profile="stowage"}': 1,
    'scheduler_unschedulable_pods{plugin="SchedulingGates",profile="stowage"}': 1,
    'stowage_decision_log_decisions_total{outcome="written"}': 4,
    "stowage_recording_active": 1,
    'stowage_reflector_lists_total{path="/api/v1/namespaces"}': 1,
    'workqueue_adds_total{name="bindings"}': 2,
    'workqueue_adds_total{name="evictions"}': 1,
    'workqueue_adds_total{name="events"}': 5,
    'workqueue_depth{name="bindings"}': 0,
    'workqueue_work_duration_seconds_count{name="bindings"}': 2,
}


async def _page(port: int) -> dict[str, float]:
    """The samples of the metrics page, by their names with labels."""
    url = f"https://127.0.0.1:{port}/metrics"
    async with aiohttp.ClientSession() as session, session.get(url, ssl=False) as response:
        text = await response.text()
    return {
        sample.name + _labels(sample.labels): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def _labels(labels: dict[str, str]) -> str:
    inner = ",".join(f'{name}="{value}"' for name, value in sorted(labels.items()))
    return f"{{{inner}}}" if inner else ""


async def _shows_all(port: int) -> bool:
    return WANTED.items() <= (await _page(port)).items()


async def test_a_run_counts_what_happened_to_its_pods(
    api_server: ApiServerUnderTest, api: ApiClient, tmp_path: Path
) -> None:
    cluster = Cluster(api)
    await cluster.add_node("n1")
    with reserved_port() as port:
        access = AccessOptions(always_allow_paths=("/metrics",))
        async with running_scheduler(
            api_server.kubeconfig,
            serving=ServingOptions(bind_address="127.0.0.1", port=port, access=access),
            leader_election=LeaderElectionOptions(identity="me"),
            recording=RecordingOptions(
                tmp_path / "recording", RecordingLimits(2**20, 3600.0), 300.0
            ),
            decision_log=DecisionLogOptions(directory=tmp_path / "decisions"),
        ):
            await cluster.create("first", cpu="3", terminationGracePeriodSeconds=0)
            await cluster.node_of("first")
            await cluster.create("gated", schedulingGates=[{"name": GATE}])
            await cluster.create("elsewhere", nodeSelector={"disk": "ssd"})
            await cluster.refused("elsewhere")
            await cluster.create("urgent", cpu="2", priorityClassName="system-node-critical")
            await cluster.node_of("urgent")
            # The watch confirms the last binding a little later.
            with suppress(TimeoutError):
                await wait_until(lambda: _shows_all(port))
            found = await _page(port)
    assert {each: found.get(each) for each in WANTED} == WANTED
