"""NodePorts."""

from __future__ import annotations

from stowage.api.objects.pod import ContainerPort
from tests.stories.requeue_cases.case import (
    NOBODY,
    Delete,
    Put,
    RequeueCase,
    node,
    only,
    placed,
    pod,
)

PORTS = ("NodePorts",)


def port(number: int, protocol: str = "TCP", ip: str = "") -> ContainerPort:
    """A port of the node."""
    return ContainerPort(container_port=number, host_port=number, host_ip=ip, protocol=protocol)


PORT_CASES = (
    RequeueCase(
        "the pod with the same port goes",
        PORTS,
        objects=[
            node(),
            placed("r", "n", host_ports=[8080]),
            placed("s", "n", host_ports=[8081]),
        ],
        pending=[pod("p", host_ports=[8080]), pod("q", host_ports=[8081])],
        trigger=[Delete(placed("r", "n", host_ports=[8080]))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a node joins, with all its ports free",
        PORTS,
        objects=[node(), placed("r", "n", host_ports=[8080])],
        pending=[pod("p", host_ports=[8080])],
        trigger=[Put(node("m"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a pod without ports goes",
        PORTS,
        objects=[node(), placed("r", "n", host_ports=[8080]), placed("s", "n")],
        pending=[pod("p", host_ports=[8080])],
        trigger=[Delete(placed("s", "n"))],
        requeued=NOBODY,
    ),
    RequeueCase(
        "the same number of another protocol becomes free",
        PORTS,
        objects=[
            node(),
            placed("r", "n", host_ports=[port(53)]),
            placed("s", "n", host_ports=[port(53, "UDP")]),
        ],
        pending=[pod("p", host_ports=[port(53)])],
        trigger=[Delete(placed("s", "n", host_ports=[port(53, "UDP")]))],
        requeued=NOBODY,
    ),
    RequeueCase(
        "the port on one address becomes free for the pod that wants it on all",
        PORTS,
        objects=[node(), placed("r", "n", host_ports=[port(80, ip="127.0.0.1")])],
        pending=[
            pod("p", host_ports=[port(80)]),
            pod("q", host_ports=[port(80, ip="127.0.0.1")]),
        ],
        trigger=[Delete(placed("r", "n", host_ports=[port(80, ip="127.0.0.1")]))],
        requeued=only("p", "q"),
    ),
    RequeueCase(
        "a pod without a node that wants the same port goes",
        PORTS,
        objects=[node(), placed("r", "n", host_ports=[8080])],
        pending=[pod("p", host_ports=[8080]), pod("q", host_ports=[8080])],
        trigger=[Delete(pod("q", host_ports=[8080]))],
        requeued=NOBODY,
    ),
    RequeueCase(
        "the node with the taken port changes",
        PORTS,
        objects=[node(), placed("r", "n", host_ports=[8080])],
        pending=[pod("p", host_ports=[8080])],
        trigger=[Put(node(cpu="8", labels={"key": "value"}))],
        requeued=NOBODY,
    ),
)
