"""A scheduler extender as a separate process; ``python extender_server.py MODE``.

It prints its port, then serves until it is killed. It writes its requests as JSON lines to the
file named by ``--log``. Modes:

    picky    filter: only nodes whose name ends in an even digit pass, or in one of the digits of
             ``--passes``; the others are "too odd";
             prioritize: 10 for the node named by ``--favourite``; bind: at the API server;
             preempt: leaves only the node named by ``--favourite``
    slow     answers after an hour
    garbage  answers 200 with invalid JSON
    broken   answers 500
    denying  filter and bind answer with an Error
"""

from __future__ import annotations

import argparse
import json
import ssl
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

AN_HOUR_S = 3600.0


class Handler(BaseHTTPRequestHandler):
    """Answers requests according to the mode."""

    options: argparse.Namespace
    lock = threading.Lock()

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        verb = self.path.rsplit("/", 1)[-1]
        with self.lock, Path(self.options.log).open("a", encoding="utf-8") as log:
            log.write(json.dumps({"verb": verb, "asked": asked}) + "\n")
        match self.options.mode:
            case "slow":
                threading.Event().wait(AN_HOUR_S)
            case "garbage":
                self._answer(200, b"<html>it works</html>")
            case "broken":
                self._answer(500, b"")
            case "denying":
                self._answer(200, json.dumps({"Error": "not today"}).encode())
            case _:
                self._answer(200, json.dumps(getattr(self, f"_{verb}")(asked)).encode())

    def log_message(self, *_args: Any) -> None:
        """Do not log requests."""

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _filter(self, asked: dict[str, Any]) -> dict[str, Any]:
        names = _names(asked)
        passed = [name for name in names if name[-1] in self.options.passes]
        failed = {name: "too odd" for name in names if name not in passed}
        if asked["NodeNames"] is not None:
            return {"NodeNames": passed, "FailedNodes": failed}
        items = [node for node in asked["Nodes"]["items"] if node["metadata"]["name"] in passed]
        return {"nodes": {"items": items}, "failedNodes": failed}

    def _prioritize(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        favourite = self.options.favourite
        return [{"Host": name, "Score": 10 * (name == favourite)} for name in _names(asked)]

    def _preempt(self, asked: dict[str, Any]) -> dict[str, Any]:
        by_node = asked["NodeNameToMetaVictims"] or {
            name: {
                "Pods": [{"UID": pod["metadata"]["uid"]} for pod in victims["Pods"]],
                "NumPDBViolations": victims["NumPDBViolations"],
            }
            for name, victims in asked["NodeNameToVictims"].items()
        }
        favourite = self.options.favourite
        left = {name: victims for name, victims in by_node.items() if name == favourite}
        return {"NodeNameToMetaVictims": left}

    def _bind(self, asked: dict[str, Any]) -> dict[str, Any]:
        pod = f"{asked['PodNamespace']}/pods/{asked['PodName']}"
        body = {
            "metadata": {"name": asked["PodName"], "uid": asked["PodUID"]},
            "target": {"kind": "Node", "name": asked["Node"]},
        }
        request = urllib.request.Request(
            f"{self.options.server}/api/v1/namespaces/{pod}/binding",
            json.dumps(body).encode(),
            {"Content-Type": "application/json", "Authorization": f"Bearer {self.options.token}"},
        )
        # The API servers of tests have self-signed certificates.
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with urllib.request.urlopen(request, context=context):
            return {}


def _names(asked: dict[str, Any]) -> list[str]:
    if asked["NodeNames"] is not None:
        return list(asked["NodeNames"])
    return [node["metadata"]["name"] for node in asked["Nodes"]["items"]]


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=["picky", "slow", "garbage", "broken", "denying"])
    parser.add_argument("--log", required=True)
    parser.add_argument("--favourite", default="")
    parser.add_argument("--passes", default="02468")
    parser.add_argument("--server", default="")
    parser.add_argument("--token", default="")
    Handler.options = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_port, flush=True)  # noqa: T201 - the parent process reads the port
    server.serve_forever()


if __name__ == "__main__":
    main()
