"""Hours of a cluster's life in seconds, and any of them again, step by step.

The scheduler's shell and engine run unchanged: reflectors, dispatcher, binder, leader election, the
loop. What they stand on is simulated: the event loop's clock jumps to the next thing that happens
(`loop`), requests go through a network that loses, delays and cuts (`network`) to a model of the
API server (`server`), and a plan drawn from a seed makes pods, takes nodes away, stops, kills and
restarts replicas (`plan`). Everything is drawn from that one seed, so a seed that fails fails again
in the same way. At the end the server's own history is judged (`audit`).

Kopf is left out, whose place a plain list and watch takes: what Kopf does between our session and
our handlers is tested over HTTP.

``python -m tests.simulation --seeds 0:10000`` runs many; ``--seeds 42 --trace`` shows one.
"""
