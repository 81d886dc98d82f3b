"""Custom resources of the contract tests: their definitions, their objects, and waits for both."""

import asyncio
from typing import Any

from simcluster.tests.support.api_client import ApiClient
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S

Json = dict[str, Any]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
SPEC: Json = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 10, "description": "How big."},
        "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        "alias": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
        "replicas": {"type": "integer", "default": 1},
        "parts": {
            "type": "array",
            "maxItems": 2,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["id"],
            "items": {
                "type": "object",
                "required": ["id"],
                "properties": {
                    "id": {"type": "string"},
                    "on": {"type": "boolean", "default": True},
                },
            },
        },
        "port": {"x-kubernetes-int-or-string": True},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}


def version(name: str, **fields: Any) -> Json:
    """A served version of the widget's definition."""
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": SPEC, "status": status}}
    return {
        "name": name,
        "served": True,
        "storage": False,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        **fields,
    }


def definition(kind: str, group: str, *versions: Json, scope: str = "Namespaced") -> Json:
    """A CustomResourceDefinition."""
    plural = f"{kind.lower()}s"
    names = {"kind": kind, "plural": plural}
    spec = {"group": group, "scope": scope, "names": names, "versions": list(versions)}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": spec,
    }


WIDGET = definition(
    "Widget",
    "example.com",
    version(
        "v1",
        storage=True,
        subresources={
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        additionalPrinterColumns=[
            {
                "name": "Size",
                "type": "integer",
                "jsonPath": ".spec.size",
                "description": "Its size",
            },
            {
                "name": "Ready",
                "type": "string",
                "jsonPath": '.status.conditions[?(@.type=="Ready")].status',
            },
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
            {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
        ],
    ),
    version("v1beta1", deprecated=True),
)
for served in WIDGET["spec"]["versions"]:
    served["selectableFields"] = [{"jsonPath": ".spec.color"}]
WIDGET["spec"]["names"] |= {"shortNames": ["wd"], "categories": ["all"]}


def widget(name: str, **spec: Any) -> Json:
    """A widget of size 3."""
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"size": 3, **spec},
    }


async def define(http: ApiClient, body: Json) -> Json:
    """Create a definition and wait until its resource is served under all versions."""
    await http.create(DEFINITIONS, body)
    name = body["metadata"]["name"]
    spec = body["spec"]
    path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
    async with asyncio.timeout(WAIT_TIMEOUT_S):
        while True:
            found = (await http.get(f"{DEFINITIONS}/{name}")).body
            conditions = found["status"].get("conditions") or []
            established = {each["type"] for each in conditions if each["status"] == "True"}
            is_served = (await http.get(path)).status == 200
            if {"Established", "NamesAccepted"} <= established and is_served:
                return found
            await asyncio.sleep(0.02)


async def until_gone(http: ApiClient, name: str) -> None:
    """Wait until a definition is deleted."""
    async with asyncio.timeout(WAIT_TIMEOUT_S):
        while True:
            if (await http.get(f"{DEFINITIONS}/{name}")).status == 404:
                return
            await asyncio.sleep(0.02)
