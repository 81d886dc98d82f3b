"""Devices, and what requests lack of them, as tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.markup import escape

from stowage.analysis.devices.shortage import DeviceShortage, NodeDevice, number_of_devices
from stowage.cli.ask.output import plain_table

_FEW_ROWS = 10


def shortage_lines(shortages: Sequence[DeviceShortage], wide: bool) -> list[RenderableType]:
    """How many nodes fail which request, and what it finds there."""
    if not shortages:
        return []
    shown = shortages if wide else shortages[:_FEW_ROWS]
    left = len(shortages) - len(shown)
    more = [f"  and {left} more: -o wide"] if left else []
    return ["missing devices:", *(f"  {escape(_line(each))}" for each in shown), *more]


def _line(shortage: DeviceShortage) -> str:
    number = len(shortage.nodes)
    nodes = "1 node" if number == 1 else f"{number} nodes"
    return f"{nodes}: {shortage.subject}: {shortage.finding}"


def device_tables(devices: Sequence[NodeDevice], wide: bool) -> list[RenderableType]:
    """The devices of a node; with `wide` all of them."""
    free = sum(each.is_free and each.is_usable for each in devices)
    table = plain_table("device", "attributes and capacity", "taints", "allocated by")
    shown = devices if wide else devices[:_FEW_ROWS]
    for each in shown:
        values = {**each.attributes, **each.capacity}
        known = ", ".join(f"{name}={value}" for name, value in values.items())
        user = ", ".join(each.claims) or ("free" if each.is_usable else "pool cannot be used")
        table.add_row(*map(escape, (each.device, known, ", ".join(each.taints), user)))
    left = len(devices) - len(shown)
    more = [f"and {left} more: -o wide"] if left else []
    return [f"{number_of_devices(len(devices))}, {free} free", table, *more]
