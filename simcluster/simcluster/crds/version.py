"""One version of a custom resource, as its CustomResourceDefinition describes it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from simcluster.crds.apply_types import object_type
from simcluster.crds.schema_rules import SchemaRules, schema_rules
from simcluster.schema import Struct

Json = dict[str, Any]


@dataclass(frozen=True)
class CustomVersion:
    """One served version of a custom resource.

    Args:
        definition: name of the CustomResourceDefinition.
        schema: ``openAPIV3Schema``.
        columns: ``additionalPrinterColumns``.
        scale: the three paths of ``subresources.scale``; ``None`` without that subresource.
        selectable_fields: paths that field selectors support.
        is_terminating: the definition is being deleted; new objects are refused.
        warning: sent with every answer of a deprecated version; empty otherwise.
    """

    definition: str
    schema: Json
    columns: tuple[Json, ...] = ()
    scale: Mapping[str, str] | None = None
    selectable_fields: tuple[str, ...] = ()
    is_terminating: bool = False
    warning: str = ""

    @cached_property
    def apply_type(self) -> Struct:
        """The type of its objects for server-side apply."""
        return object_type(self.schema)

    @cached_property
    def rules(self) -> SchemaRules | None:
        """The compiled rules of its schema; ``None`` without any."""
        return schema_rules(self.schema)
