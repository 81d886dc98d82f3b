"""Devices: slices, pools and their devices, classes, claims, and what is allocated.

Purpose. The plugin DynamicResources allocates devices for claims; it reads from here which devices
a node can use, which of them are free, and what the selectors of classes and requests select.

Structure. `Devices` holds everything. `DeviceSlices` gives the devices of a slice consecutive rows
of `DeviceColumns` and knows the pools of each node; of the slices that are not for one node,
`SharedSlices` knows which nodes can use the same ones. `AllocatedDevices` counts allocated devices
and consumed capacity by event: those of claims, and those that pods in flight have reserved.
`Selectors` evaluates CEL expressions once per signature (driver, attributes, capacity).

Invariants.

- The allocated devices are those of the allocations of all claims, and those in flight. No device
  is given to two claims, except to share it or with admin access.
- An event costs time in proportion to the slice or claim that changed. A pool is put together anew
  when it is next asked for.
"""
