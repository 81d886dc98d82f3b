"""Nodes in racks, and a gang whose members go into one rack."""

from __future__ import annotations

from typing import Any

from tests.stories.gang_driver import GangDriver, make_group

BARRED = "preemption: not eligible due to placement-based pod group scheduling limitation"


def driver_of_racks(*racks: tuple[str, int], cpu: str = "2", **options: Any) -> GangDriver:
    """A driver with so many nodes in each rack; node names are rack and number."""
    driver = GangDriver(**options)
    for rack, num_nodes in racks:
        for number in range(num_nodes):
            name = f"{rack}-{number}"
            driver.add_nodes(name, cpu=cpu, memory="2Gi", labels={"rack": rack})
    return driver


def racks_of(driver: GangDriver) -> set[str]:
    """The racks of the bound members."""
    return {driver.node_of(name).partition("-")[0] for name in driver.bound() if name[0] == "p"}


def show_gang(driver: GangDriver, num: int, min_count: int | None = None, **fields: Any) -> None:
    """Show a gang with the topology key ``rack``, and its members ``p-0``, ``p-1``, ..."""
    driver.show_group(make_group(min_count=min_count or num, topology="rack"))
    driver.create_members(*(f"p-{number}" for number in range(num)), **fields)
