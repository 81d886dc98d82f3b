"""Our decisions agree with kube-scheduler's on a sample of every recorded theme.

``python -m tests.conformance`` compares all of them.
"""

from __future__ import annotations

import pytest

from tests.conformance.__main__ import main
from tests.conformance.decision_themes import run_decision_theme
from tests.conformance.value_themes import VECTORS, read_rows

#: Theme -> the sample is one case of so many.
SAMPLES = {
    "balanced": 8,
    "declared-features": 2,
    "dra-basic": 15,
    "dra-binding": 8,
    "dra-capacity": 10,
    "dra-extended": 10,
    "dra-lists": 10,
    "dra-mixed": 10,
    "dra-partition": 10,
    "dra-pools": 10,
    "dra-shared": 10,
    "dra-taints": 10,
    "image-locality": 8,
    "interpod": 20,
    "mixed": 20,
    "node-affinity": 15,
    "node-name": 3,
    "node-ports": 5,
    "preemption": 10,
    "resources": 15,
    "scheduling-gates": 2,
    "sequence": 20,
    "spread": 20,
    "taints": 15,
    "volume-binding": 8,
    "volume-limits": 8,
    "volume-restrictions": 8,
    "volume-zone": 4,
}


@pytest.mark.parametrize("theme", SAMPLES)
def test_a_sample_of_the_theme_agrees_in_every_field(theme: str) -> None:
    rows = read_rows(VECTORS / f"{theme}.jsonl.gz")
    report = run_decision_theme(theme, rows[:: SAMPLES[theme]])
    assert [str(difference) for difference in report.differences[:5]] == []
    assert report.cases >= 5
    assert report.agreeing + sum(report.explained.values()) == report.attempts
    assert report.agreeing > report.attempts / 3


def test_a_wrong_record_is_reported_with_case_attempt_and_field() -> None:
    row = read_rows(VECTORS / "taints.jsonl.gz")[0]
    (first, *_) = row["result"]["pods"]
    changed = {**row, "result": {"pods": [{**first, "nodesTotal": 999}]}}
    (difference,) = run_decision_theme("taints", [changed]).differences
    assert str(difference).startswith(f"{row['case']['id']} {first['pod']} attempt 1: nodesTotal:")
    assert "want 999" in str(difference)


def test_the_command_prints_a_line_per_theme_and_a_summary(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(
        [str(VECTORS / "scheduling-gates.jsonl.gz"), str(VECTORS / "helper-quantity.jsonl.gz")]
    )
    lines = capsys.readouterr().out.splitlines()
    assert code == 0
    assert [line.split()[0] for line in lines[:3]] == [
        "theme",
        "scheduling-gates",
        "helper-quantity",
    ]
    assert lines[-1] == "480 passed, 0 failed"


def test_the_command_names_a_file_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["nowhere.jsonl"])
    assert "there is no nowhere.jsonl" in capsys.readouterr().err
