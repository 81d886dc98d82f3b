"""The Table format, which ``kubectl get`` asks for."""

import time
from collections.abc import Callable
from typing import Any

from simcluster.apiserver.errors import bad_request
from simcluster.apiserver.formats import Format, partial_metadata
from simcluster.kinds.resources import PODS, Resource
from simcluster.printing.columns import columns_of
from simcluster.printing.pods import row_conditions
from simcluster.store.store import Stored, encode

Json = dict[str, Any]

_INCLUDED = ("", "None", "Metadata", "Object")


class TableFormat(Format):
    """Objects as rows; in a watch only the first table carries the column definitions.

    Args:
        resource: decides the columns.
        include_object: ``None``, ``Metadata`` or ``Object``: the part of the object in each row.
        version: of ``meta.k8s.io``.
        time_s: returns the current time, for ages.

    Raises:
        ApiError: 400, ``include_object`` is none of the three.
    """

    cache_key = ""

    def __init__(
        self,
        resource: Resource,
        include_object: str = "Metadata",
        version: str = "v1",
        time_s: Callable[[], float] = time.time,
    ) -> None:
        if include_object not in _INCLUDED:
            why = f"Invalid value: \"{include_object}\": must be 'Metadata', 'Object', 'None'"
            raise bad_request(
                f"Unable to convert to Table as requested: includeObject: {why}, or empty"
            )
        self._resource = resource
        self._include_object = include_object
        self._version = version
        self._time_s = time_s
        self._columns = columns_of(resource)
        self._has_defined_columns = False

    def one(self, stored: Stored) -> bytes:
        """A table of one row."""
        return self._single(stored.whole, str(stored.revision))

    def bookmark(self, metadata: Json) -> bytes:
        """A table of one row that shows no object."""
        blank = {"metadata": {"name": "", **metadata}, "spec": {}, "status": {}}
        return self._single(blank, metadata["resourceVersion"])

    def _single(self, obj: Json, resource_version: str) -> bytes:
        with_columns = not self._has_defined_columns
        self._has_defined_columns = True
        opening = self._opening({"resourceVersion": resource_version}, with_columns)
        return opening + encode(self._row(obj, self._time_s())) + b"]}"

    def list_opening(self, metadata: Json) -> bytes:
        """A table up to its rows."""
        return self._opening(metadata, with_columns=True)

    def list_item(self, stored: Stored) -> bytes:
        """A row."""
        return encode(self._row(stored.whole, self._time_s()))

    def _opening(self, metadata: Json, with_columns: bool) -> bytes:
        definitions: list[Json] | None = None
        if with_columns:
            definitions = [column.definition() for column in self._columns]
        head = {
            "kind": "Table",
            "apiVersion": f"meta.k8s.io/{self._version}",
            "metadata": metadata,
            "columnDefinitions": definitions,
        }
        return encode(head)[:-1] + b',"rows":['

    def _row(self, obj: Json, now: float) -> Json:
        row: Json = {"cells": [column.cell(obj, now) for column in self._columns]}
        if self._resource is PODS and (conditions := row_conditions(obj)):
            row["conditions"] = conditions
        if self._include_object == "Object":
            head = {"kind": self._resource.kind, "apiVersion": self._resource.api_version}
            row["object"] = {**head, **obj}
        elif self._include_object == "None":
            row["object"] = None
        else:
            row["object"] = partial_metadata(obj, self._version)
        return row
