"""The node files on the page of the simulated cluster are what the program reads."""

from pathlib import Path

import pytest

from simcluster.kubelet.node_file import read_node_file
from tests.docs.pages import DOCS, Block, blocks

NODE_FILES = [
    block
    for block in blocks(DOCS / "reference" / "simulated-cluster.md")
    if block.language == "yaml"
]


@pytest.mark.parametrize("block", NODE_FILES, ids=lambda block: f"line {block.line}")
def test_a_node_file_of_the_page_is_read(block: Block, tmp_path: Path) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text(block.text, encoding="utf-8")
    assert read_node_file(path)


def test_the_page_shows_groups_of_nodes_and_of_devices() -> None:
    assert len(NODE_FILES) == 2
