"""A pod that changes while it is being bound keeps its latest version."""

from __future__ import annotations

from stowage.api.events import BindFailed, PendingPodSeen
from tests.support.builders import make_pod
from tests.support.models.engine_driver import EngineDriver


def test_a_pod_whose_binding_fails_is_queued_as_it_was_last_seen() -> None:
    driver = EngineDriver()
    driver.add_nodes("n")
    driver.create_pods("p")
    driver.schedule()
    driver.handle(PendingPodSeen(make_pod("p", labels={"app": "web"})))
    driver.handle(BindFailed("uid-p", "n", "refused"))
    queued = driver.engine.state.queue.latest("uid-p")
    assert queued is not None
    assert queued.labels == {"app": "web"}
    driver.check_replay()
