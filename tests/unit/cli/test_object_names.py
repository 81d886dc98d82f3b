"""Pods, pod groups and nodes have names as Stowage and as kubectl write them."""

from __future__ import annotations

import pytest
import typer

from stowage.cli.ask.object_names import group_key, node_name, node_names, pod_key, pod_text


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("cart", "shop/cart"),
        ("harbour/cart", "harbour/cart"),
        ("pod/cart", "shop/cart"),
        ("pods/cart", "shop/cart"),
        ("po/cart", "shop/cart"),
        ("Pod/cart", "shop/cart"),
        ("pod/harbour/cart", "harbour/cart"),
        ("pod/pod/cart", "pod/cart"),
        ("node/cart", "node/cart"),
    ],
)
def test_a_pod_may_have_a_namespace_and_a_type(text: str, key: str) -> None:
    assert pod_key(text, "shop") == key


@pytest.mark.parametrize("text", ["", "shop/", "/cart", "a/b/c", "pod/", "pod/a/b/c"])
def test_other_names_of_pods_are_refused_with_what_is_expected(text: str) -> None:
    expected = r"\(expected \[NAMESPACE/\]NAME, or pod/NAME with --namespace\)"
    for read in (pod_key, pod_text):
        with pytest.raises(typer.BadParameter, match=expected):
            read(text)


def test_a_pod_group_may_have_a_type() -> None:
    assert {group_key(f"{word}/train", "ml") for word in ("podgroup", "podgroups", "pg")} == {
        "ml/train"
    }


def test_a_node_may_have_a_type() -> None:
    assert node_names(["n", "node/n", "nodes/n", "no/n"]) == ["n"] * 4
    for text in ("a/b", "", "node/", "node/a/b"):
        with pytest.raises(typer.BadParameter, match=r"\(expected NAME or node/NAME\)"):
            node_name(text)


def test_a_type_is_taken_away_from_a_name_without_a_namespace() -> None:
    names = ("pod/cart", "po/shop/cart", "shop/cart", "cart")
    assert [pod_text(text) for text in names] == ["cart", "shop/cart", "shop/cart", "cart"]
