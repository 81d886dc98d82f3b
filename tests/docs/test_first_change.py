"""The first change of CONTRIBUTING.md can be made, and has the effect that the page says."""

from __future__ import annotations

import re
import subprocess
import types
from pathlib import Path

from stowage.api.objects.pod import Toleration
from stowage.framework import NoArgs
from stowage.plugins import node_unschedulable
from tests.conformance.value_themes import VECTORS, read_rows
from tests.docs.pages import ROOT
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster
from tests.unit.plugins.single_plugin import refused

_PERL = re.compile(r"perl -pi -e '(?P<script>[^']+)' \\\n +(?P<file>\S+)\n")


def test_the_first_change_lets_the_plugin_refuse_a_pod_that_tolerates_the_taint() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    command = _PERL.search(page)
    assert command is not None
    file = ROOT / command["file"]
    assert file == Path(node_unschedulable.__file__)
    arguments = ["perl", "-pe", command["script"], str(file)]
    source = subprocess.run(arguments, capture_output=True, check=True, text=True).stdout
    changed = types.ModuleType("changed")
    exec(compile(source, str(file), "exec"), changed.__dict__)
    cluster = MirroredCluster([make_node("n", unschedulable=True)])
    pod = make_pod("p", tolerations=[Toleration(operator="Exists")])
    assert not refused(node_unschedulable.NodeUnschedulable(NoArgs()), cluster, pod)
    assert refused(changed.NodeUnschedulable(NoArgs()), cluster, pod)


def test_the_page_counts_the_recorded_cases_that_it_repeats() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert f"repeats {len(list(read_rows(VECTORS / 'taints.jsonl.gz')))} cases" in page
