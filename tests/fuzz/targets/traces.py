"""The CSV files of an openb trace."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from functools import lru_cache
from random import Random

import msgspec

from stowage.analysis.simulation.openb.objects import node_object, pod_objects
from stowage.analysis.simulation.openb.trace import (
    InvalidTrace,
    OpenbNode,
    OpenbPod,
    OpenbTrace,
    read_trace,
)
from stowage.api.values.quantity import quantity_milli_value
from tests.fuzz.campaign import Finding
from tests.fuzz.mutations import mutated_bytes
from tests.openb.synthetic import nodes_csv, pods_csv

_TOKENS = (
    *(b",", b"\n", b"\r\n", b"\r", b'"', b'""', b"\xef\xbb\xbf", b"\xff", b"\x00", b"\x1b[1m"),
    *(b"-1", b"1.0", b"1e3", b"9" * 30, b"9" * 5000, b"1000", b"1001", b"0", b" 1 ", b"nan"),
    *(b"gpu", b"sn", b"name", b"num_gpu", b"|", "\u0661".encode(), "\u2028".encode()),
)
_PLACE = re.compile(r"(nodes|pods)\.csv:\d+: .*: .* \(expected .+\)", re.DOTALL)
MAX_MESSAGE = 1_500


class TraceTarget:
    """Two files: a trace whose rows are those of the files, or the line and column of a fault."""

    name = "traces"

    def make(self, rng: Random) -> tuple[bytes, bytes]:
        nodes, pods = rng.choice(_files())
        kind = rng.random()
        if kind < 0.6:
            nodes = mutated_bytes(rng, nodes, _TOKENS, [pods])
        if kind > 0.4:
            pods = mutated_bytes(rng, pods, _TOKENS, [nodes])
        return nodes, pods

    def run(self, given: tuple[bytes, bytes]) -> str:
        nodes, pods = given
        try:
            trace = read_trace("t", ("nodes.csv", nodes), ("pods.csv", pods))
        except InvalidTrace as invalid:
            text = str(invalid)
            if _PLACE.fullmatch(text) is None or len(text) > MAX_MESSAGE:
                raise Finding(f"names no place, or is too long: {text!r:.300}") from invalid
            if not text.isprintable():
                raise Finding(f"not one line of text: {text!r:.300}") from invalid
            return "rejected"
        _check_trace(trace)
        return "accepted"

    def close(self) -> None:
        """Nothing is held."""


@lru_cache(maxsize=1)
def _files() -> tuple[tuple[bytes, bytes], ...]:
    return tuple(
        (nodes_csv(seed, 3), pods_csv(seed, 6, with_spec=seed % 2 == 0)) for seed in range(8)
    )


def _check_trace(trace: OpenbTrace) -> None:
    """Check that the objects have their amounts, and that the written trace is the same."""
    for node in trace.nodes:
        found = node_object(node, 0).status.allocatable
        if quantity_milli_value(found["cpu"]) != node.cpu_milli:
            raise Finding(f"node {node} offers {found}")
    if len(list(pod_objects(trace.pods, "stowage"))) != len(trace.pods):
        raise Finding("a pod is missing")
    again = read_trace(
        "t",
        ("nodes.csv", _written("sn,cpu_milli,memory_mib,gpu,model", trace.nodes)),
        ("pods.csv", _written("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec", trace.pods)),
    )
    if again != trace:
        raise Finding(f"the written trace is another one: {trace} {again}")


def _written(header: str, rows: Sequence[OpenbNode] | Sequence[OpenbPod]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(header.split(","))
    writer.writerows(msgspec.structs.astuple(row) for row in rows)
    return text.getvalue().encode()
