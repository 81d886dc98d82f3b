"""``stowage bench console``, with a small cluster."""

from rich.console import Console

from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from stowage_benchmarks.console.report import print_costs
from stowage_benchmarks.console.run import AnswerCost, ConsoleCosts
from stowage_benchmarks.console.stream import StreamCost
from stowage_benchmarks.tests.integration.bench_process import bench

SIZES = ["--nodes=10", "--pods=100", "--rounds=2", "--pages=2", "--decisions=500"]


def test_every_answer_and_the_stream_are_measured() -> None:
    result = bench("console", *SIZES, timeout_s=5 * WAIT_TIMEOUT_S)
    assert (result["nodes"], result["pods"]) == (10, 100)
    answers = {each["answer"] for each in result["answers"]}
    assert {"map", "a pending pod", "what-if: drain a node"} <= answers
    assert all(each["median_s"] > 0 and each["kib"] > 0 for each in result["answers"])
    assert result["stream"]["follow_us"] > 0
    assert result["stream"]["bytes_a_page"] > 0


def test_the_table_has_the_figures_of_each_answer() -> None:
    console = Console(record=True, width=120)
    cost = AnswerCost("map", 0.0625, 0.03125, 36.5, 0.125)
    stream = StreamCost(20, 1000, 150.0, 12.0, 40.0)
    print_costs(console, ConsoleCosts(5000, 50_000, 1.5, (cost,), stream))
    text = console.export_text()
    assert "5,000 nodes, 50,000 pods" in text
    assert [text.find(each) > 0 for each in ("0.062", "0.031", "36.5", "0.125")] == [True] * 4
    assert "12 µs to tell the pages" in text
