"""``stowage bench questions``, with a small cluster."""

from rich.console import Console

from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from stowage_benchmarks.questions.report import print_answers
from stowage_benchmarks.questions.run import Answers, QuestionCost
from stowage_benchmarks.tests.integration.bench_process import bench

SIZES = ["--nodes=10", "--pods=30", "--rounds=2"]


def test_every_question_is_answered_by_a_new_process_and_by_the_shell() -> None:
    result = bench("questions", *SIZES, timeout_s=5 * WAIT_TIMEOUT_S)
    assert (result["nodes"], result["pods"]) == (10, 30)
    asked = {each["question"].partition(":")[0] for each in result["costs"]}
    assert {"what-if", "capacity", "compact", "explain a pending pod"} <= asked
    for cost in result["costs"]:
        assert min(cost["first_s"], cost["new_s"], cost["following_s"]) > 0
        assert cost["first_cpu_s"] > cost["following_cpu_s"] >= 0


def test_the_table_has_the_figures_of_each_question() -> None:
    console = Console(record=True, width=120)
    cost = QuestionCost("compact", 8.5, 7.25, 6.375, 0.125, 0.0625)
    print_answers(console, Answers(5000, 50_000, 1.5, (cost,)))
    text = console.export_text()
    assert "5,000 nodes, 50,000 pods" in text
    assert [text.find(each) > 0 for each in ("8.50", "7.25", "6.375", "0.125", "0.062")] == [
        True
    ] * 5
