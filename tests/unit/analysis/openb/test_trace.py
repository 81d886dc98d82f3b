"""Reading the CSV files of an openb trace."""

from __future__ import annotations

import pytest

from stowage.analysis.simulation.openb.trace import InvalidTrace, OpenbNode, OpenbPod, read_trace

NODES = b"sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\n"
PODS = b"name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,12000,16384,1,460\n"


def _error(nodes: bytes = NODES, pods: bytes = PODS) -> str:
    with pytest.raises(InvalidTrace) as caught:
        read_trace("t", ("nodes.csv", nodes), ("pods.csv", pods))
    return str(caught.value)


def test_columns_may_come_in_any_order_and_others_are_ignored() -> None:
    nodes = b"\xef\xbb\xbfgpu,sn,rack,memory_mib,cpu_milli\r\n2,n0,r7,262144,64000\r\n"
    pods = b"gpu_spec,qos,gpu_milli,num_gpu,memory_mib,cpu_milli,name\nT4 | P100,LS,1000,2,1,5,p\n"
    trace = read_trace("t", ("n", nodes), ("p", pods))
    assert trace.nodes == (OpenbNode("n0", 64000, 262144, 2),)
    assert trace.pods == (OpenbPod("p", 5, 1, 2, 1000, "T4|P100"),)
    assert trace.pods[0].models == ("T4", "P100")


def test_a_pod_without_gpus_has_no_share_and_no_model() -> None:
    pods = PODS.replace(b"gpu_milli", b"gpu_milli,gpu_spec").replace(b"460", b"460,")
    trace = read_trace("t", ("n", NODES), ("p", pods + b"p1,1,1,0,500,P100\n"))
    assert trace.pods[1] == OpenbPod("p1", 1, 1, 0, 0)


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (b"12k,16384,1,460", "pods.csv:2: cpu_milli: '12k' (expected a whole number of 0 to "),
        (b"-1,16384,1,460", "pods.csv:2: cpu_milli: '-1' (expected a whole number of 0 to "),
        (b"1,,1,460", "pods.csv:2: memory_mib: '' (expected a whole number of 0 to "),
        (b"1,1,1,1001", "pods.csv:2: gpu_milli: '1001' (expected a whole number of 0 to 1000)"),
        (b"1,1,1,0", "pods.csv:2: gpu_milli: '0' (expected 1 to 1000, for a pod with a GPU)"),
        (b"1,1,2,500", "pods.csv:2: gpu_milli: '500' (expected 1000, for a pod with several GPUs)"),
        (b"1,1,1", "pods.csv:2: name: 'p0,1,1,1' (expected 5 columns, as in the first line)"),
        (b'1,1,1,"4', "pods.csv:2: text: 'unexpected end of data' (expected a line of CSV)"),
        (b"1,1,1,\xff", "pods.csv:2: text: '255' (expected UTF-8)"),
    ],
)
def test_a_malformed_line_is_named_by_file_line_and_column(bad: bytes, error: str) -> None:
    assert _error(pods=PODS.replace(b"12000,16384,1,460", bad)).startswith(error)


def test_a_missing_column_is_named() -> None:
    found = _error(nodes=NODES.replace(b"gpu,", b"gpus,"))
    assert found.startswith("nodes.csv:1: gpu: 'sn,cpu_milli,memory_mib,gpus,model' (expected this")


def test_a_name_may_occur_once() -> None:
    assert _error(pods=PODS + b"\np0,1,1,0,0\n").startswith(
        "pods.csv:4: name: 'p0' (expected another name than in line 2)"
    )


def test_a_trace_has_a_gpu_and_a_pod_that_wants_one() -> None:
    assert _error(nodes=NODES.replace(b",2,", b",0,")).startswith("nodes.csv:1: gpu: '0' (expected")
    assert _error(pods=PODS.replace(b"1,460", b"0,0")).startswith("pods.csv:1: num_gpu: '0' (exp")
    assert _error(nodes=b"").startswith("nodes.csv:1: sn: ''")


def test_a_number_of_thousands_of_digits_is_refused() -> None:
    assert "gpu" in _error(b"sn,cpu_milli,memory_mib,gpu\nn,1,1," + b"9" * 5_000)


def test_a_column_that_would_steer_a_terminal_is_shown_escaped() -> None:
    text = _error(b"\x1b[2J,sn,cpu_milli,memory_mib,gpu\nn,1\n")
    assert "\\x1b[2J" in text
    assert text.isprintable()
