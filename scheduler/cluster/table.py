"""``meta.k8s.io/v1`` Tables: what ``kubectl get`` prints."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from scheduler.cluster.formats import Format, partial_metadata
from scheduler.cluster.resources import Resource
from scheduler.cluster.store import Stored, encode
from scheduler.cluster.table_cells import Column, default_columns
from scheduler.cluster.table_columns import COLUMNS

Json = dict[str, Any]


class TableFormat(Format):
    """Objects as rows; in a watch only the first table carries the column definitions.

    Args:
        resource: decides the columns.
        include_object: ``None``, ``Metadata`` or ``Object``: what each row carries along.
        time_s: the present, for ages.
    """

    cache_key = ""

    def __init__(
        self,
        resource: Resource,
        include_object: str = "Metadata",
        time_s: Callable[[], float] = time.time,
    ) -> None:
        self._resource = resource
        self._include_object = include_object
        self._time_s = time_s
        self._columns: Sequence[Column] = COLUMNS.get(resource.stored_in) or default_columns()
        self._has_defined_columns = False

    def one(self, stored: Stored) -> bytes:
        """A table of one row."""
        metadata = {"resourceVersion": str(stored.revision)}
        with_columns = not self._has_defined_columns
        self._has_defined_columns = True
        return self._opening(metadata, with_columns) + self.list_item(stored) + b"]}"

    def list_opening(self, metadata: Json) -> bytes:
        """A table up to its rows."""
        return self._opening(metadata, with_columns=True)

    def list_item(self, stored: Stored) -> bytes:
        """A row."""
        return encode(self._row(stored, self._time_s()))

    def _opening(self, metadata: Json, with_columns: bool) -> bytes:
        head = {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
            "columnDefinitions": [column.definition() for column in self._columns]
            if with_columns
            else None,
        }
        return encode(head)[:-1] + b',"rows":['

    def _row(self, stored: Stored, now: float) -> Json:
        obj = stored.obj
        cells = [column.cell(obj, now) for column in self._columns]
        row: Json = {"cells": cells}
        if self._include_object == "Object":
            head = {"kind": self._resource.kind, "apiVersion": self._resource.api_version}
            row["object"] = {**head, **obj}
        elif self._include_object != "None":
            row["object"] = partial_metadata(obj)
        return row
