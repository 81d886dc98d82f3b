"""A cluster that cannot be read, or input that cannot, ends a question with its reason."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from simcluster import write_kubeconfig
from stowage.cli.main import app

POD = '{"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}'
QUESTIONS = ["explain pod p", "explain node n", "what-if --drain n", "capacity -f POD", "compact"]
FORBIDDEN = '{"kind":"Status","status":"Failure","reason":"Forbidden","message":"no rights"}'

pytestmark = pytest.mark.parametrize("question", QUESTIONS)


class Server(ThreadingHTTPServer):
    """A server for all kinds at once."""

    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing: once one list is refused, the client closes the connections of the others."""


@contextmanager
def server_answering(status: int, body: str) -> Iterator[str]:
    """The URL of a server that answers every request the same."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_arguments: object) -> None:
            return

    with Server(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def asked(folder: Path, question: str, *flags: str, stdin: str = "") -> str:
    """The error of a question that cannot be answered."""
    pod = folder / "pod.json"
    pod.write_text(POD)
    words = [str(pod) if word == "POD" else word for word in question.split()]
    done = CliRunner().invoke(app, [*words, *flags], input=stdin)
    assert (done.exit_code, done.stdout) == (1, "")
    return done.stderr


def about_server(folder: Path, question: str, url: str) -> str:
    kubeconfig = write_kubeconfig(folder / "kubeconfig", url, "")
    return asked(folder, question, "--kubeconfig", str(kubeconfig))


def test_a_server_that_is_away_is_named(question: str, tmp_path: Path) -> None:
    error = about_server(tmp_path, question, "http://127.0.0.1:1")
    assert error.startswith("error: Cannot connect to host 127.0.0.1:1")


def test_a_refusal_is_shown(question: str, tmp_path: Path) -> None:
    with server_answering(403, FORBIDDEN) as url:
        assert about_server(tmp_path, question, url) == "error: 403 Forbidden: no rights\n"


def test_a_server_that_is_no_api_server_is_refused(question: str, tmp_path: Path) -> None:
    with server_answering(200, "{}") as url:
        error = about_server(tmp_path, question, url)
    assert error.startswith("error: the server does not answer as an API server does: List")


def test_a_truncated_recording_is_named(question: str, tmp_path: Path) -> None:
    file = tmp_path / "x.recording"
    file.write_bytes(b"stowage recording 1\n\x00\x01")
    error = asked(tmp_path, question, "--from", str(file))
    assert error.startswith(f"error: {file}: ")


def test_a_recording_on_standard_input_is_refused(question: str, tmp_path: Path) -> None:
    error = asked(tmp_path, question, "--from", "-", stdin="stowage recording 1\n")
    expected = "expected objects; name the file of a recording after --from"
    assert error == f"error: standard input: {expected}\n"


def test_an_empty_file_is_no_cluster(question: str, tmp_path: Path) -> None:
    file = tmp_path / "empty.yaml"
    file.write_text("---\n# nothing\n")
    error = asked(tmp_path, question, "--from", str(file))
    assert error == f"error: {file}: expected objects; it has none\n"


def test_profiles_come_from_a_file_or_a_configmap(question: str, tmp_path: Path) -> None:
    flags = ("--config", str(tmp_path / "config.yaml"), "--configmap", "default/stowage")
    error = asked(tmp_path, question, *flags)
    assert error == (
        '--configmap: "default/stowage" (expected no --config, because both set the profiles)\n'
    )


def test_a_truncated_dump_is_named(question: str, tmp_path: Path) -> None:
    file = tmp_path / "dump.json"
    file.write_text('{"kind": "List", "items": [{"kind": "Node"')
    error = asked(tmp_path, question, "--from", str(file))
    assert error.startswith(f"error: {file}: expected JSON or YAML; ")
