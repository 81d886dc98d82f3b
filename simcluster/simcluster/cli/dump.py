"""``stowage dump``: writes the objects of a running cluster to a file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import msgspec
import typer
from rich.markup import escape

from stowage.cli.lazy_commands import single_command_app
from stowage.cli.terminal import terminal

if TYPE_CHECKING:
    from simcluster import Resource
    from stowage.operator.client.api_client import ApiClient

_PAGE = 500

Target: TypeAlias = Annotated[Path, typer.Argument(dir_okay=False, metavar="FILE")]
Kubeconfig: TypeAlias = Annotated[
    Path | None, typer.Option(exists=True, dir_okay=False, help="As kubectl's.")
]
Secrets: TypeAlias = Annotated[
    bool, typer.Option("--secrets", help="Write Secrets, too; they are left out otherwise.")
]


Force: TypeAlias = Annotated[bool, typer.Option("--force", help="Overwrite a file that exists.")]


class _Metadata(msgspec.Struct):
    next_page: str = msgspec.field(name="continue", default="")


class _Page(msgspec.Struct):
    items: list[msgspec.Raw] = []
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


def dump(
    file: Target, kubeconfig: Kubeconfig = None, secrets: Secrets = False, force: Force = False
) -> None:
    """Write the objects of a running cluster to a file.

    Reads every kind that the simulated cluster serves, and every custom one, from the API server,
    and writes all objects as one JSON list: nodes, pods, workloads, volumes, budgets, roles and
    the rest. stowage cluster --from FILE starts from it.
    """
    # The Kubernetes client takes long to import; --help does not need it.
    from kubernetes.aio.config import ConfigException  # noqa: PLC0415

    from simcluster import BUILT_IN, POD_GROUP_KINDS, write_items  # noqa: PLC0415
    from simcluster.harness.failures import FAILURES  # noqa: PLC0415

    console = terminal(stderr=True)
    if file.exists() and not force:
        text = f"[red]not written:[/red] {escape(str(file))} exists; --force overwrites it"
        console.print(text, soft_wrap=True)
        raise typer.Exit(1)
    seen: dict[str, Resource] = {}
    for resource in (*BUILT_IN, *POD_GROUP_KINDS):  # of two with the same collection, the first
        if "create" in resource.verbs:
            seen.setdefault(resource.stored_in, resource)
    if not secrets:
        del seen["secrets"]
    try:
        items, notes = asyncio.run(_read(list(seen.values()), kubeconfig))
        if items or not notes:
            write_items(file, items)
    except (OSError, ConfigException, *FAILURES) as error:
        text = str(error) or "the API server does not answer"
        console.print(f"[red]not written:[/red] {escape(text)}", soft_wrap=True)
        raise typer.Exit(1) from error
    for note in notes:
        console.print(escape(note), soft_wrap=True)
    if notes and not items:
        console.print("[red]not written:[/red] nothing could be read")
        raise typer.Exit(1)
    console.print(f"{len(items)} objects in {file}", soft_wrap=True)


async def _read(
    resources: list[Resource], kubeconfig: Path | None
) -> tuple[list[bytes], list[str]]:
    """Every object encoded, and one sentence for each kind that could not be read."""
    from simcluster import CUSTOM_RESOURCE_DEFINITIONS, POD_GROUP_KINDS  # noqa: PLC0415 - as above
    from stowage.operator.client.api_client import ApiClient  # noqa: PLC0415
    from stowage.operator.client.api_error import ApiError  # noqa: PLC0415
    from stowage.operator.client.connection import connect  # noqa: PLC0415

    items: list[bytes] = []
    notes: list[str] = []
    connection = await connect(None if kubeconfig is None else str(kubeconfig))
    try:
        client = ApiClient(connection)
        pending = list(resources)
        while pending:
            resource = pending.pop(0)
            try:
                found = [item async for item in _objects(client, resource)]
            except ApiError as refusal:
                if refusal.status not in {403, 404}:
                    raise
                if refusal.status == 404 and resource in POD_GROUP_KINDS:
                    continue  # few API servers serve alpha kinds
                notes.append(f"left out {resource.qualified}: {refusal}")
                continue
            items += found
            if resource == CUSTOM_RESOURCE_DEFINITIONS:
                pending += [made for item in found for made in _defined(item)]
    finally:
        await connection.close()
    return items, notes


def _defined(definition: bytes) -> list[Resource]:
    """The first version of the resource that a definition adds."""
    from simcluster import is_established, resources_of  # noqa: PLC0415 - as above

    decoded = msgspec.json.decode(definition)
    return resources_of(decoded)[:1] if is_established(decoded) else []


async def _objects(client: ApiClient, resource: Resource) -> AsyncIterator[bytes]:
    """Objects of one kind with kind and apiVersion, read in pages."""
    prefix = f"/apis/{resource.group}" if resource.group else "/api"
    path, next_page = f"{prefix}/{resource.version}/{resource.plural}", ""
    while True:
        query = {"limit": str(_PAGE), **({"continue": next_page} if next_page else {})}
        page = msgspec.json.decode(await client.get(path, query), type=_Page)
        for item in page.items:
            yield _with_kind(resource, bytes(item))
        next_page = page.metadata.next_page
        if not next_page:
            return


def _with_kind(resource: Resource, item: bytes) -> bytes:
    """An item of a list, which may lack kind and apiVersion, with both."""
    obj = msgspec.json.decode(item, type=dict[str, msgspec.Raw])
    if "kind" in obj and "apiVersion" in obj:
        return item
    return resource.type_prefix + item.lstrip()[1:]


app = single_command_app(dump)
