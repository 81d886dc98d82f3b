"""``stowage bench cluster``, with a small cluster in a server process."""

from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from stowage_benchmarks.cluster.report import request_table, watch_table
from stowage_benchmarks.cluster.result import RequestCost, WatchCost
from stowage_benchmarks.tests.integration.bench_process import bench

SIZES = ["--nodes=20", "--pods=300", "--requests=100"]


def test_every_request_is_answered_and_every_watch_event_arrives() -> None:
    result = bench("cluster", *SIZES, timeout_s=WAIT_TIMEOUT_S)
    assert (result["nodes"], result["pods"]) == (20, 300)
    assert [each["requests"] for each in result["requests"]] == [100] * 5
    assert all(each["per_s"] > 0 for each in result["requests"])
    assert [each["events"] for each in result["watches"]] == [400, 100, 100]
    assert all(each["per_s_to_slowest"] > 0 for each in result["watches"])
    assert 0 < result["rss_mib"] <= result["peak_rss_mib"]
    assert result["list_mib"] > 0.1
    assert result["load_s"] > 0
    assert result["file_mib"] > 0.1


def test_the_tables_have_a_row_for_each_measure() -> None:
    requests = (RequestCost("get a pod", 5, 10.0, 0.1), RequestCost("bind a pod", 5, 10.0, 0.1))
    assert request_table(requests).row_count == 2
    assert watch_table((WatchCost("what exists", 5, 10, 100.0, 2.0),)).row_count == 1
