"""Hours of a cluster's life in seconds, and any of them again, step by step.

The scheduler's shell and engine run unchanged: reflectors, dispatcher, binder, leader election,
the loop. What they stand on is simulated: the event loop's clock jumps to the next thing that
happens (`loop`), requests go through a network that loses, delays and cuts (`network`,
`watch_stream`) to a model of the API server (`server`, `requests`), with kubelets, a controller
of volumes (`storage`) and one that attaches them (`attachments`), and to extenders that are slow,
silent, wrong or late (`extenders`, `extender_servers`, `extender_network`). Everybody's wall clock
jumps; only the loop's own time never does. A plan drawn from the seed has users and other
schedulers do what they do (`users`), and stops, kills and restarts servers and replicas, at times
just when a certain write arrives (`disturbances`). Then it is calm, and pods that fit tell how long
it takes until all is well (`probes`). Everything is drawn from that one seed, so a seed that fails
fails again in the same way. The server's own history is judged as it is made (`audit`,
`storage_audit`), and the engines once everything had time to settle (`end_state`, `known_objects`,
`judge`).

Kopf is left out, whose place a plain list and watch takes: what Kopf does between our session and
our handlers is tested over HTTP.

``python -m tests.simulation --seeds 0:10000`` runs many; ``--seeds 42 --trace`` shows one.
"""
