"""An engine whose configuration does not change refuses another one."""

from __future__ import annotations

import pytest

from stowage.api.config.errors import InvalidConfiguration
from stowage.engine.settings import not_configurable


def test_an_engine_that_cannot_be_configured_names_the_kind_it_was_given() -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        not_configurable({"kind": "KubeSchedulerConfiguration"})
    (error,) = refused.value.errors
    assert str(error) == (
        'kind: "KubeSchedulerConfiguration" (expected an engine that can be configured)'
    )
