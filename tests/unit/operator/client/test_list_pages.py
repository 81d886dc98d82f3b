"""The event loop goes on while a page is decoded."""

from __future__ import annotations

import asyncio

import msgspec

from stowage.api.decoding import pages
from stowage.api.objects.pod import Pod
from stowage.operator.client.list_pages import decode_page


async def test_other_tasks_run_between_the_steps_of_a_large_page() -> None:
    item = {"metadata": {"name": "p", "annotations": {"text": "x" * pages.STEP_BYTES}}}
    body = msgspec.json.encode({"metadata": {"resourceVersion": "5"}, "items": [item] * 4})
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count_turns())
    page = await decode_page(Pod, body)
    counting.cancel()
    assert len(page.items) == 4
    assert turns >= 4
