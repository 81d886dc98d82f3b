"""The effective configuration is complete and loads to itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from stowage.api.config.loading import API_VERSION, KIND, configuration_hash, load_configuration
from stowage.api.events import NodeSeen, PendingPodSeen
from stowage.api.instructions import BindPod
from stowage.api.objects.node import Taint
from stowage.api.objects.pod import Toleration
from stowage.cli.effective import effective_builtins
from stowage.cli.main import app
from stowage.cli.profiles import make_frameworks
from stowage.engine import Engine, Journal, make_engine, replay
from stowage.plugins import in_tree_registry
from tests.support.builders import make_node, make_pod
from tests.support.engines import of_type

REPOSITORY = Path(__file__).parents[3]
SAMPLES = sorted((REPOSITORY / "config").glob("*.yaml"))


def effective(builtins: Any) -> dict[str, Any]:
    registry = in_tree_registry()
    configuration = load_configuration(builtins)
    frameworks = make_frameworks(configuration, registry)
    return effective_builtins(configuration, frameworks, registry)


def configuration(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": KIND, **fields}


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_the_effective_configuration_loads_to_itself(sample: Path) -> None:
    shown = effective(yaml.safe_load(sample.read_text()))
    assert effective(yaml.safe_load(yaml.safe_dump(shown))) == shown


def test_the_effective_configuration_has_the_same_plugins_order_and_weights() -> None:
    registry = in_tree_registry()
    (written,) = make_frameworks(load_configuration(), registry)
    (loaded,) = make_frameworks(load_configuration(effective(None)), registry)
    for point, plugins in written.profile.plugins.items():
        names = [plugin.name for plugin in loaded.profile.plugins[point]]
        assert names == [plugin.name for plugin in plugins]
    assert loaded.profile.weights == written.profile.weights


PLACEMENTS = ("PodGroupPodsCount", "PlacementFragmentation")


def test_the_effective_configuration_has_the_plugins_that_rank_placements_of_groups() -> None:
    (loaded,) = make_frameworks(load_configuration(effective(None)), in_tree_registry())
    assert set(PLACEMENTS) <= set(loaded.profile.instances)
    assert loaded.placements.breaks_ties


def test_a_plugin_that_ranks_placements_stays_disabled_in_the_effective_configuration() -> None:
    disabled = {"multiPoint": {"disabled": [{"name": PLACEMENTS[1]}]}}
    shown = effective(configuration(profiles=[{"plugins": disabled}]))
    (loaded,) = make_frameworks(load_configuration(shown), in_tree_registry())
    assert set(PLACEMENTS) & set(loaded.profile.instances) == {PLACEMENTS[0]}


def engine_of(builtins: Any, choose: Any, **parts: Any) -> Engine:
    return make_engine(make_frameworks(load_configuration(builtins)), choose, **parts)


def test_what_an_event_moves_is_scheduled_in_the_same_order_under_the_effective_configuration() -> (
    None
):
    """A recording has only the effective one, and it lists the plugins by extension point."""
    journal = Journal()
    engine = engine_of(None, lambda _num_ties: 0, journal=journal)
    taint = Taint("dedicated", "infra", "NoSchedule")
    full, tainted = make_node("full", cpu="1"), make_node("tainted", cpu="8", taints=[taint])
    engine.handle([NodeSeen(full), NodeSeen(tainted)], 0.0)
    tolerations = [Toleration("dedicated", "Exists")]
    pods = [
        make_pod("large", cpu="9", scheduler_name="stowage", tolerations=tolerations),
        make_pod("repelled", cpu="2", scheduler_name="stowage"),
    ]
    engine.handle(map(PendingPodSeen, pods), 0.0)
    engine.schedule(0.0, 2)
    engine.handle([NodeSeen(make_node("new", cpu="16"))], 10.0)
    assert len(of_type(BindPod, engine.schedule(10.0, 2))) == 2
    replay(journal, lambda choose, _wall_clock: engine_of(effective(None), choose))


def test_equivalent_configurations_have_the_same_hash() -> None:
    plain = effective(configuration())
    spelled_out = effective(
        configuration(
            parallelism=16,
            profiles=[
                {
                    "schedulerName": "stowage",
                    "plugins": {"score": {"enabled": [{"name": "TaintToleration", "weight": 3}]}},
                    "pluginConfig": [{"name": "InterPodAffinity", "args": {}}],
                }
            ],
        )
    )
    assert configuration_hash(spelled_out) == configuration_hash(plain)


def test_another_weight_has_another_hash() -> None:
    enabled = [{"name": "TaintToleration", "weight": 4}]
    heavier = effective(configuration(profiles=[{"plugins": {"score": {"enabled": enabled}}}]))
    assert configuration_hash(heavier) != configuration_hash(effective(None))


def test_private_keys_are_left_out() -> None:
    tls = {"certData": "Y2VydA==", "keyData": "a2V5"}
    extender = {"urlPrefix": "https://extender:8443", "tlsConfig": tls}
    (shown,) = effective(configuration(extenders=[extender]))["extenders"]
    assert "keyData" not in shown["tlsConfig"]


def test_config_show_prints_the_effective_configuration_with_its_hash(tmp_path: Path) -> None:
    runner = CliRunner()
    shown = tmp_path / "effective.yaml"
    result = runner.invoke(app, ["config", "show", "--effective"])
    shown.write_text(result.stdout)
    first_line = result.stdout.splitlines()[0]
    checked = runner.invoke(app, ["config", "check", str(shown)])
    assert first_line.startswith("# hash ")
    assert first_line.removeprefix("# ") in checked.stdout


def test_config_check_reports_errors_of_fields_and_plugins_at_once(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    args = {"scoringStrategy": {"type": "Least"}}
    profile = {
        "plugins": {"score": {"enabled": [{"name": "NoSuchPlugin"}]}},
        "pluginConfig": [{"name": "NodeResourcesFit", "args": args}],
    }
    wrong = configuration(parallelism=0, podMaxBackoffSeconds="ten", profiles=[profile])
    file.write_text(yaml.safe_dump(wrong))
    result = CliRunner().invoke(app, ["config", "check", str(file)], env={"COLUMNS": "200"})
    assert result.exit_code == 1
    for path in (
        "parallelism",
        "podMaxBackoffSeconds",
        "profiles[0].plugins.score.enabled[0].name",
        "profiles[0].pluginConfig[0].args.scoringStrategy.type",
    ):
        assert result.stderr.count(f": {path}: ") == 1
