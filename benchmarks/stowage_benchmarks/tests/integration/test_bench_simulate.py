"""``stowage bench simulate``, with a small cluster."""

import msgspec
from typer.testing import CliRunner

from stowage.cli.main import app
from stowage_benchmarks.simulation.run import SimulationCost

SIZES = ["--nodes=10", "--pods=60"]


def test_the_result_has_the_rate_and_the_memory() -> None:
    done = CliRunner().invoke(app, ["bench", "simulate", *SIZES, "--json"])
    assert done.exit_code == 0, done.output
    cost = msgspec.json.decode(done.stdout, type=SimulationCost)
    assert (cost.nodes, cost.pods, cost.bound, cost.completed) == (10, 60, 60, 60)
    assert cost.placements_per_s == cost.bound / cost.cpu_s
    assert cost.peak_memory_mib > 20
    assert cost.calibration_ms > 0


def test_the_line_has_the_same_figures() -> None:
    cost = SimulationCost(1200, 50_000, 50_000, 45_000, 9.5, 5263.2, 151.6, 30.0)
    assert cost.text == (
        "50,000 of 50,000 pods placed on 1,200 nodes in 9.5 s of CPU time: 5,263 a second; "
        "45,000 ended; peak memory 152 MiB"
    )
