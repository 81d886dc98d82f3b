"""The API servers that integration tests can run against."""

import contextlib
import http.client
import os
import secrets
import shutil
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from simcluster import SimulatedCluster, write_kubeconfig
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S

Json = dict[str, Any]

ASSETS = "KUBEBUILDER_ASSETS"
EXISTING = "STOWAGE_TEST_KUBECONFIG"
_LOG_TAIL = 4000
_AWAITED = (
    "/readyz",
    "/api/v1/namespaces/kube-system",
    # Made after readiness, with the first cluster IP: from then on services can be created.
    "/api/v1/namespaces/default/services/kubernetes",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:auth-delegator",
    "/apis/scheduling.k8s.io/v1/priorityclasses/system-cluster-critical",
)


@dataclass(frozen=True)
class ApiServerUnderTest:
    """A running API server.

    ``cluster`` is the simulated cluster itself, ``None`` for any other server.
    """

    url: str
    kubeconfig: Path
    token: str
    is_simulated: bool
    tls: ssl.SSLContext | None = None
    cluster: SimulatedCluster | None = None


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def insecure_tls() -> ssl.SSLContext:
    """TLS that trusts any certificate."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def self_signed_certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("making a certificate needs openssl")
    certificate, key = folder / "tls.crt", folder / "tls.key"
    extensions = (
        "subjectAltName=IP:127.0.0.1",
        "basicConstraints=critical,CA:TRUE",
        "keyUsage=critical,digitalSignature,keyCertSign",
    )
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
    command += ["-subj", "/CN=stowage", "-keyout", str(key), "-out", str(certificate)]
    for extension in extensions:
        command += ["-addext", extension]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


def _service_account_key(folder: Path) -> Path:
    openssl = shutil.which("openssl")
    if openssl is None:
        raise RuntimeError(f"{ASSETS} is set, but making keys for kube-apiserver needs openssl")
    key = folder / "service-account.key"
    subprocess.run([openssl, "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    return key


@contextlib.contextmanager
def _running(arguments: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(arguments, stdout=output, stderr=output)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _await_answers(
    urls: Sequence[str],
    token: str,
    processes: Sequence[subprocess.Popen[bytes]],
    logs: Sequence[Path],
) -> None:
    """Wait until each URL is answered with 200.

    Raises:
        RuntimeError: a process has ended, or the timeout is over; with the ends of the logs.
    """
    deadline = time.monotonic() + WAIT_TIMEOUT_S
    for url in urls:
        while not _is_answered(url, token):
            has_ended = any(process.poll() is not None for process in processes)
            if has_ended or time.monotonic() > deadline:
                tails = "\n".join(f"{log}:\n{log.read_text()[-_LOG_TAIL:]}" for log in logs)
                raise RuntimeError(f"{url} is not answered with 200\n{tails}")
            time.sleep(0.2)


def _is_answered(url: str, token: str) -> bool:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    # An answer other than 200 is an OSError, too.
    with contextlib.suppress(OSError, http.client.HTTPException):
        urllib.request.urlopen(request, context=insecure_tls(), timeout=2).close()
        return True
    return False


@contextlib.contextmanager
def real_api_server(assets: Path, folder: Path) -> Iterator[ApiServerUnderTest]:
    """kube-apiserver and etcd from ``assets``, as envtest runs them: no controllers, no kubelet."""
    client_port, peer_port, port = _free_port(), _free_port(), _free_port()
    etcd_url, url = f"http://127.0.0.1:{client_port}", f"https://127.0.0.1:{port}"
    token = secrets.token_hex(16)
    tokens = folder / "tokens.csv"
    tokens.write_text(f'{token},admin,admin,"system:masters"\n')
    key = _service_account_key(folder)
    etcd = [
        str(assets / "etcd"),
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={etcd_url}",
        f"--advertise-client-urls={etcd_url}",
        f"--listen-peer-urls=http://127.0.0.1:{peer_port}",
        "--unsafe-no-fsync",
    ]
    api_server = [
        str(assets / "kube-apiserver"),
        f"--etcd-servers={etcd_url}",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--cert-dir={folder / 'certificates'}",
        f"--token-auth-file={tokens}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--allow-privileged=true",
        "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
    ]
    kubeconfig = write_kubeconfig(folder / "kubeconfig", url, token)
    written: Json = yaml.safe_load(kubeconfig.read_text())
    written["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True
    kubeconfig.write_text(yaml.safe_dump(written))
    server = ApiServerUnderTest(url, kubeconfig, token, is_simulated=False, tls=insecure_tls())
    logs = folder / "etcd.log", folder / "kube-apiserver.log"
    with _running(etcd, logs[0]) as store:
        _await_answers([f"{etcd_url}/health"], token, [store], logs[:1])
        with _running(api_server, logs[1]) as front:
            _await_answers([url + path for path in _AWAITED], token, [store, front], logs)
            yield server


def existing_api_server(path: Path) -> ApiServerUnderTest:
    """The cluster of a kubeconfig's current context; it must carry a bearer token or none."""
    config: Json = yaml.safe_load(path.read_text())
    context = _named(config["contexts"], config["current-context"])["context"]
    cluster = _named(config["clusters"], context["cluster"])["cluster"]
    user = _named(config["users"], context["user"]).get("user") or {}
    url = cluster["server"]
    tls = insecure_tls() if url.startswith("https") else None
    return ApiServerUnderTest(url, path, user.get("token", ""), is_simulated=False, tls=tls)


def _named(entries: list[Json], name: str) -> Json:
    return next(entry for entry in entries if entry["name"] == name)


def configured_assets() -> Path | None:
    """The folder of kube-apiserver and etcd, if the environment variable is set.

    Raises:
        RuntimeError: the folder does not contain them.
    """
    named = os.environ.get(ASSETS)
    if not named:
        return None
    folder = Path(named)
    for binary in ("kube-apiserver", "etcd"):
        if not (folder / binary).is_file():
            raise RuntimeError(f"{ASSETS} is {named}: expected a folder with {binary} in it")
    return folder
