"""The catalog of served resources, and the order of versions."""

from dataclasses import replace

from simcluster.crds.version import CustomVersion
from simcluster.kinds.catalog import Catalog, version_rank
from simcluster.kinds.resources import PODS, Resource

WIDGETS = replace(
    PODS,
    group="example.com",
    kind="Widget",
    plural="widgets",
    custom=CustomVersion("widgets.example.com", {"type": "object"}),
)


def test_versions_are_ordered_by_kubernetes_version_priority() -> None:
    given = ["v1alpha1", "v2", "foo1", "v1", "v1beta2", "v10", "v1beta1", "bar"]
    assert sorted(given, key=version_rank) == [
        "v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "bar", "foo1",
    ]  # fmt: skip


def test_custom_resources_are_served_until_their_definition_is_deleted() -> None:
    catalog, added = Catalog(), list[Resource]()
    catalog.follow_collections(added.append)
    before = catalog.generation
    catalog.serve("widgets.example.com", [WIDGETS])
    assert catalog.find("example.com", "v1", "widgets") is WIDGETS
    assert catalog.of_kind("example.com/v1", "Widget") is WIDGETS
    assert catalog.group_versions()[-1] == ("example.com", "v1")
    catalog.serve("widgets.example.com", [WIDGETS])
    assert added == [WIDGETS]
    catalog.serve("widgets.example.com", [])
    assert catalog.find("example.com", "v1", "widgets") is None
    assert catalog.generation > before
    assert ("example.com", "v1") not in catalog.group_versions()


def test_each_cluster_has_its_own_catalog() -> None:
    Catalog().serve("widgets.example.com", [WIDGETS])
    assert Catalog().find("example.com", "v1", "widgets") is None
