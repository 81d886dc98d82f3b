"""Deterministic simulation: hours of cluster time in seconds, reproducible from a seed.

The scheduler's shell and engine run unchanged: reflectors, dispatcher, binder, leader election and
the main loop. Everything below them is simulated. The clock of the event loop jumps to the next
timer (`loop`). Requests go over a network that loses, delays and cuts them (`network`,
`watch_stream`) to a model of the API server (`server`, `requests`), with kubelets (`kubelet`), a
volume controller (`storage`), an attach-detach controller (`attachments`) and extenders that are
slow, silent, wrong or late (`extenders`, `extender_servers`, `extender_network`). Wall clocks of
processes and of the server jump; the loop's clock does not.

A plan drawn from the seed (`plan`) lets users and other schedulers act (`users`), and stops, kills
and restarts servers and replicas, sometimes exactly when a certain write arrives
(`fault_injector`). Then the faults end, and probe pods measure how long the scheduler takes to
recover (`probes`). All random choices come from the one seed, so a failing seed fails again in the
same way. Auditors check the server's history while it grows (`audit`, `storage_audit`); the engines
are checked after everything had time to settle (`end_state`, `known_objects`, `fresh_engine`).

With files, processes record the calls of their engines and log their decisions; the recordings have
to replay, and the decisions to agree with the bindings (`kept_files`). `report` keeps an account of
long runs. Faults that tests plant in the scheduler (`planted`) have to be found; `detection` counts
the lives that find them.

Kopf is not simulated: a plain list and watch replaces it (`plain_watch`). Tests over HTTP cover it.

``python -m tests.simulation --seeds 0:10000`` runs many seeds; ``--seeds 42 --trace`` shows one.
"""
