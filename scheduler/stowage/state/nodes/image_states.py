"""Images on nodes (``ImageStates`` of kube-scheduler)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowage.api.objects.node import ContainerImage
from stowage.state.arrays import BoolArray, read_only


class ImageState:
    """An image name: its size, and the nodes that have it.

    Attributes:
        size_bytes: The size that the first node reported; other nodes may report another size.
    """

    __slots__ = ("_mask", "_num_rows", "_rows", "size_bytes")

    def __init__(self, size_bytes: int, num_rows: int) -> None:
        self.size_bytes = size_bytes
        self._num_rows = num_rows
        self._rows: set[int] = set()
        self._mask: BoolArray | None = None

    @property
    def num_nodes(self) -> int:
        """Number of nodes that have the image."""
        return len(self._rows)

    @property
    def on_node(self) -> BoolArray:
        """``bool[rows]``: which nodes have the image; built on first use."""
        if self._mask is None:
            self._mask = np.zeros(self._num_rows, dtype=np.bool_)
            self._mask[np.fromiter(self._rows, dtype=np.intp, count=len(self._rows))] = True
        return read_only(self._mask)

    def is_on(self, row: int) -> bool:
        """Whether one node has the image; builds nothing."""
        return row in self._rows if self._mask is None else bool(self._mask[row])

    def add(self, row: int) -> None:
        """Add a node that has the image."""
        self._rows.add(row)
        if self._mask is not None:
            self._mask[row] = True

    def discard(self, row: int) -> None:
        """Remove a node that no longer has the image."""
        self._rows.discard(row)
        if self._mask is not None:
            self._mask[row] = False

    def grow(self, num_rows: int) -> None:
        """Extend the arrays to `num_rows`."""
        self._num_rows = num_rows
        self._mask = None


class ImageStates:
    """The images of all nodes, by name."""

    __slots__ = ("_interned", "_num_rows", "_states")

    def __init__(self, num_rows: int) -> None:
        self._num_rows = num_rows
        self._states: dict[str, ImageState] = {}
        self._interned: dict[ContainerImage, ContainerImage] = {}

    def get(self, name: str) -> ImageState | None:
        """The state of an image; None if no node has it."""
        return self._states.get(name)

    def names_on(self, row: int) -> set[str]:
        """The names of the images of a row; visits all images, so for checks only."""
        return {name for name, state in self._states.items() if state.is_on(row)}

    def replace(
        self, row: int, old: Sequence[ContainerImage], new: Sequence[ContainerImage]
    ) -> tuple[ContainerImage, ...]:
        """Replace the images of a row.

        As in kube-scheduler, the old images are removed first: an image that only this node has
        takes its new size.

        Returns:
            `new` with interned images: most nodes have the same images, and the names are long.
        """
        for image in old:
            for name in image.names:
                self._discard(name, row)
        kept = tuple(self._interned.setdefault(image, image) for image in new)
        for image in kept:
            for name in image.names:
                state = self._states.get(name)
                if state is None:
                    state = self._states[name] = ImageState(image.size_bytes, self._num_rows)
                state.add(row)
        for image in old:
            if not any(name in self._states for name in image.names):
                self._interned.pop(image, None)
        return kept

    def grow(self, num_rows: int) -> None:
        """Extend the arrays to `num_rows`."""
        self._num_rows = num_rows
        for state in self._states.values():
            state.grow(num_rows)

    def _discard(self, name: str, row: int) -> None:
        state = self._states.get(name)
        if state is None:
            return
        state.discard(row)
        if not state.num_nodes:
            del self._states[name]
