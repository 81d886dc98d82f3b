"""Compare the values of ``stowage.api`` and CEL selectors with kube-scheduler v1.36.2.

Each theme is a file of recorded rows, one JSON object a line. `run_value_theme` compares them one
by one: it yields None for a row that agrees and a `Difference` for one that does not.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from stowage.api import (
    LabelSelector,
    Node,
    NodeSelector,
    Pod,
    QuantityError,
    SelectorError,
    Taint,
    Toleration,
    compile_label_selector,
    compile_node_selector,
    compile_preferred_terms,
    convert_object,
    first_untolerated_taint,
    parse_label_selector,
    parse_quantity,
    pod_limits,
    pod_requests,
    pod_usage,
    quantity_milli_value,
    quantity_value,
    required_node_affinity,
    tolerates,
)
from stowage.api.objects.pod import PreferredSchedulingTerm
from stowage.cel import CelCompileError, CelRuntimeError, compile_selector
from stowage.state import ClusterCache
from stowage.state.nodes.node_matching import preferred_terms_weights
from tests.support.devices import cel_device

VECTORS = Path(__file__).parent / "vectors"

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Difference:
    """A row on which we and kube-scheduler differ."""

    theme: str
    row: int
    field: str
    want: object
    got: object

    def __str__(self) -> str:
        return f"{self.theme} row {self.row}: {self.field}: want {self.want!r}, got {self.got!r}"


def read_rows(path: Path) -> list[Row]:
    """Read a recorded file, gzipped or plain."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def run_value_theme(theme: str, rows: Iterable[Row]) -> Iterator[Difference | None]:
    """Compare every row of a theme; yield None where we agree, else the first difference.

    Raises:
        KeyError: `theme` is not one of `VALUE_THEMES`.
    """
    answer = VALUE_THEMES[theme]
    for number, row in enumerate(rows, start=1):
        got = answer(row)
        recorded = row.get("result", row)
        want = {field: recorded.get(field) for field in got}
        yield next(
            (
                Difference(theme, number, field, want[field], got[field])
                for field in got
                if want[field] != got[field]
            ),
            None,
        )


def _quantity_answer(row: Row) -> dict[str, object]:
    try:
        quantity = parse_quantity(row["in"])
    except QuantityError:
        return {"ok": False}
    return {
        "ok": True,
        "sign": quantity.sign,
        "value": quantity.scaled_value(0),
        "milliValue": quantity.scaled_value(-3),
        "string": str(quantity),
        "canonical": quantity.canonical(),
    }


def _requests_answer(row: Row) -> dict[str, object]:
    pod = convert_object(Pod, row["pod"])
    usage = pod_usage(pod)
    named = {"cpu", "memory", "ephemeral-storage"}
    return {
        "requests": _recorded(row["requests"], pod_requests(pod), _overhead_counted_twice(pod)),
        "limits": _recorded(row["limits"], pod_limits(pod)),
        "node": {
            "milliCPU": usage.requests.get("cpu", 0),
            "memory": usage.requests.get("memory", 0),
            "ephemeralStorage": usage.requests.get("ephemeral-storage", 0),
            "nonZeroMilliCPU": usage.nonzero_cpu_milli,
            "nonZeroMemory": usage.nonzero_memory_bytes,
            "scalar": {k: amount for k, amount in usage.requests.items() if k not in named},
        },
    }


def _recorded(want: Row, got: Mapping[str, int], twice: Mapping[str, int] | None = None) -> object:
    """The record if our integers are equal to it, else ours; `twice` was counted twice."""
    integers = {k: each["milliValue" if k == "cpu" else "value"] for k, each in want.items()}
    once = {k: amount - (twice or {}).get(k, 0) for k, amount in integers.items()}
    return want if once == got else dict(got)


def _overhead_counted_twice(pod: Pod) -> dict[str, int]:
    """Overhead that the ``requests`` of the record contain twice.

    kube-scheduler's PodRequests adds overhead to a pod-level quantity in place where that is a big
    decimal ("1.0Gi"), so a second call for the same pod object adds it again. Objects
    of an API server are canonical ("1Gi") and not affected, nor is the ``node`` of the record.
    """
    asked = pod.spec.resources.requests if pod.spec.resources else {}
    return {
        name: quantity_milli_value(text) if name == "cpu" else quantity_value(text)
        for name, text in pod.spec.overhead.items()
        if name in asked and parse_quantity(asked[name]).wide
    }


def _selector_answer(row: Row) -> dict[str, object]:
    case = row["case"]
    try:
        answer = _SELECTOR_KINDS[case["kind"]](case)
    except SelectorError:
        # If terms were evaluated before the error, the record says that none matched.
        return {"error": row.get("error", "no error"), "match": False if "match" in row else None}
    return {"error": None, **answer}


def _label_selector(case: Row) -> dict[str, object]:
    sent = case["selector"]
    selector = compile_label_selector(msgspec.convert(sent, LabelSelector | None))
    return {"match": selector.matches(case["labels"]), "empty": selector.matches_everything}


def _selector_string(case: Row) -> dict[str, object]:
    selector = parse_label_selector(case["selector"])
    return {"match": selector.matches(case["labels"]), "canonical": str(selector)}


def _node_selector(case: Row) -> dict[str, object]:
    node = convert_object(Node, case["node"])
    terms = compile_node_selector(msgspec.convert(case["selector"], NodeSelector))
    return {"match": terms.matches(node.metadata.labels, node.metadata.name)}


def _required_node_affinity(case: Row) -> dict[str, object]:
    node = convert_object(Node, case["node"])
    affinity = required_node_affinity(convert_object(Pod, case["pod"]).spec)
    return {"match": affinity.matches(node.metadata.labels, node.metadata.name)}


def _preferred(case: Row) -> dict[str, object]:
    node = convert_object(Node, case["node"])
    sent = msgspec.convert(case["selector"], tuple[PreferredSchedulingTerm, ...])
    terms = compile_preferred_terms(sent)
    cache = ClusterCache()
    cache.update_node(node)
    (score,) = preferred_terms_weights(cache.snapshot().view(slice(1)), terms).tolist()
    return {"score": score}


def _toleration_answer(row: Row) -> dict[str, object]:
    case = row["case"]
    if case["kind"] == "single":
        toleration = msgspec.convert(case["toleration"], Toleration)
        return {"tolerates": tolerates(toleration, msgspec.convert(case["taint"], Taint))}
    taints = msgspec.convert(case["taints"], tuple[Taint, ...])
    tolerations = msgspec.convert(case["tolerations"], tuple[Toleration, ...])
    taint = first_untolerated_taint(taints, tolerations)
    shown = None if taint is None else msgspec.to_builtins(taint)
    return {"untolerated": taint is not None, "taint": shown}


def _cel_answer(row: Row) -> dict[str, object]:
    case = row["case"]
    try:
        selector = compile_selector(case["expression"])
    except CelCompileError as error:
        return {"outcome": "compileError", "error": str(error)}
    try:
        return {"outcome": "true" if selector.matches(cel_device(case["device"])) else "false"}
    except CelRuntimeError as error:
        return {"outcome": "runtimeError", "error": str(error)}


_SELECTOR_KINDS: Mapping[str, Callable[[Row], dict[str, object]]] = {
    "labelSelector": _label_selector,
    "selectorString": _selector_string,
    "nodeSelector": _node_selector,
    "requiredNodeAffinity": _required_node_affinity,
    "preferred": _preferred,
}

VALUE_THEMES: Mapping[str, Callable[[Row], dict[str, object]]] = {
    "helper-cel": _cel_answer,
    "helper-quantity": _quantity_answer,
    "helper-requests": _requests_answer,
    "helper-selector": _selector_answer,
    "helper-toleration": _toleration_answer,
}
"""Theme -> our answer to a row, in the fields of the record."""
