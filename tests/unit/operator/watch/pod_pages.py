"""Pages of lists of pending pods."""

from __future__ import annotations

from stowage.api.decoding.decode import decode_list
from stowage.api.objects.pod import Pod
from stowage.operator.watch.pending_pods import PendingPods


def handle_page(pods: PendingPods, body: bytes, *, is_first: bool = True) -> None:
    """Decode a page and handle it."""
    pods.handle_page(decode_list(Pod, body), body, is_first=is_first)
