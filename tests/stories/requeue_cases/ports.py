"""NodePorts."""

from __future__ import annotations

from stowage.api.objects.pod import ContainerPort
from tests.stories.requeue_cases.case import (
    NO_PODS,
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
    return ContainerPort(host_port=number, host_ip=ip, protocol=protocol)


PORT_CASES = (
    RequeueCase(
        "the pod with the same port is deleted",
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
        "a node with all ports free is added",
        PORTS,
        objects=[node(), placed("r", "n", host_ports=[8080])],
        pending=[pod("p", host_ports=[8080])],
        trigger=[Put(node("m"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a pod without ports is deleted",
        PORTS,
        objects=[node(), placed("r", "n", host_ports=[8080]), placed("s", "n")],
        pending=[pod("p", host_ports=[8080])],
        trigger=[Delete(placed("s", "n"))],
        requeued=NO_PODS,
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
        requeued=NO_PODS,
    ),
    RequeueCase(
        "the port becomes free on one address for a pod that requests it on all addresses",
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
        "a pod without a node that requests the same port is deleted",
        PORTS,
        objects=[node(), placed("r", "n", host_ports=[8080])],
        pending=[pod("p", host_ports=[8080]), pod("q", host_ports=[8080])],
        trigger=[Delete(pod("q", host_ports=[8080]))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "the node with the taken port changes",
        PORTS,
        objects=[node(), placed("r", "n", host_ports=[8080])],
        pending=[pod("p", host_ports=[8080])],
        trigger=[Put(node(cpu="8", labels={"key": "value"}))],
        requeued=NO_PODS,
    ),
)
