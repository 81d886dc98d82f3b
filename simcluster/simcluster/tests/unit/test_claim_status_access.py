"""Which permissions a change to the status of a device claim takes."""

from typing import Any

import pytest

from simcluster.kinds.admission.devices import claim_status_errors
from simcluster.store.store import Store

Json = dict[str, Any]

RESULT = {"request": "gpu", "driver": "d", "pool": "p", "device": "gpu-0"}
ALLOCATED = {"allocation": {"devices": {"results": [RESULT]}}}
DEVICE = {"driver": "d", "pool": "p", "device": "gpu-0"}
READY = {**DEVICE, "conditions": [{"type": "Ready", "status": "True"}]}
BINDING, DRIVER = ("update", "binding", ""), ("arbitrary-node:update", "driver", "d")


@pytest.mark.parametrize(
    ("before", "after", "asked"),
    [
        ({}, {}, []),
        ({}, ALLOCATED, [BINDING]),
        (ALLOCATED, {**ALLOCATED, "reservedFor": [{"uid": "u"}]}, [BINDING]),
        (ALLOCATED, {**ALLOCATED, "devices": [DEVICE]}, [DRIVER]),
        ({**ALLOCATED, "devices": [DEVICE]}, {**ALLOCATED, "devices": [READY]}, [DRIVER]),
        ({**ALLOCATED, "devices": [DEVICE]}, ALLOCATED, [DRIVER]),
        ({**ALLOCATED, "devices": [DEVICE]}, {}, [BINDING]),
    ],
    ids=[
        "nothing changes",
        "allocation",
        "reservation",
        "status of a device",
        "changed status of a device",
        "removed status of a device",
        "deallocation",
    ],
)
def test_each_changed_part_takes_its_own_permission(
    before: Json, after: Json, asked: list[tuple[str, str, str]]
) -> None:
    found: list[tuple[str, str, str]] = []

    def refuse(verb: str, subresource: str, name: str) -> str:
        found.append((verb, subresource, name))
        return "no"

    metadata = {"name": "c", "namespace": "default"}
    new, old = ({"metadata": metadata, "status": status} for status in (after, before))
    errors = claim_status_errors(Store(), new, old, "update", refuse)
    assert found == asked
    assert len(errors) == len(asked)
    assert all(error.message.endswith("permission: no") for error in errors)
