"""Arguments of DynamicResources, with v1.36's defaults."""

from __future__ import annotations

from collections.abc import Iterator

from stowage.api.config.loading import ConfigError
from stowage.api.config.types import ConfigStruct
from stowage.api.values.duration import Duration
from stowage.framework import PluginUnusable
from stowage.state.devices.features import DeviceFeatures


class DynamicResourcesArgs(ConfigStruct, frozen=True):
    """Time limits of device allocation.

    Attributes:
        filter_timeout: The longest search for devices on one node; 0 does not limit it.
        binding_timeout: How long a pod waits for the binding conditions of its devices; at least a
            second.
    """

    filter_timeout: Duration = Duration(10)
    binding_timeout: Duration = Duration(600)

    def validate(self) -> Iterator[ConfigError]:
        """Yield an error for each limit that is too short (``ValidateDynamicResourcesArgs``)."""
        if self.filter_timeout < 0:
            yield ConfigError("filterTimeout", self.filter_timeout, "0s or longer")
        if self.binding_timeout < 1:
            yield ConfigError("bindingTimeout", self.binding_timeout, "1s or longer")


def check_limits(args: DynamicResourcesArgs, features: DeviceFeatures) -> None:
    """Check that no time limit is set that the feature gates switch off.

    Raises:
        PluginUnusable: One is (``ValidateDynamicResourcesArgs`` of v1.36).
    """
    default = DynamicResourcesArgs()
    if not features.filter_timeout and args.filter_timeout != default.filter_timeout:
        raise PluginUnusable("filterTimeout is set, DRASchedulerFilterTimeout is disabled")
    if not features.binding_conditions and args.binding_timeout != default.binding_timeout:
        gates = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus"
        raise PluginUnusable(f"bindingTimeout is set, {gates} is disabled")
