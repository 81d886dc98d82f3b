"""The types of the served kinds: their fields, and how their lists merge.

- ``types.json`` holds the fields and types of API v1.36. ``simcluster.tests.support.client_models``
  writes it from the models of the kubernetes client; a test holds the two equal.
- ``go_types`` holds declarations of Kubernetes' Go types: pointers, and how lists merge.
- ``types`` resolves both into ``Struct``, ``ListType``, ``MapType`` and scalars.
- ``decoding`` makes an object of a request into one of its type: it drops fields that are unknown,
  null or empty, makes quantities canonical, and reports errors in the API server's words.
"""

from simcluster.schema.decoding import Problems, conform, num_keys
from simcluster.schema.scalars import DecodingError, json_word
from simcluster.schema.types import (
    DEDUCED,
    ListType,
    MapType,
    Scalar,
    Struct,
    Type,
    struct_of,
    type_of_kind,
)

__all__ = [
    "DEDUCED",
    "DecodingError",
    "ListType",
    "MapType",
    "Problems",
    "Scalar",
    "Struct",
    "Type",
    "conform",
    "json_word",
    "num_keys",
    "struct_of",
    "type_of_kind",
]
