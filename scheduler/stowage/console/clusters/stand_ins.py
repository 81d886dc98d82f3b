"""Other profiles for a loaded cluster."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from stowage.analysis.loaded_cluster import LoadedCluster, stand_ins_for
from stowage.api.events import ConfigurationChanged
from stowage.engine import EngineSettings
from stowage.framework import Framework


def decided_by(
    loaded: LoadedCluster, frameworks: Sequence[Framework], scheduler_names: Collection[str]
) -> LoadedCluster:
    """The same cluster with other profiles, and one for each of these scheduler names.

    The engine gets them as a new configuration, so it need not see all objects again.
    """
    own = [Framework(each.profile) for each in frameworks]
    stand_ins = stand_ins_for(scheduler_names, own)
    engine = loaded.engine
    engine.follow_configuration("", lambda _written: EngineSettings([*own, *stand_ins]))
    engine.handle([ConfigurationChanged("", {})], 0.0)
    names = {each.scheduler_name: own[0].scheduler_name for each in stand_ins}
    return msgspec.structs.replace(loaded, stand_ins=names)
