"""The objects of the Helm chart."""

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml

from tests.integration.deployment.deployed import MANIFESTS, Json

CHART = MANIFESTS / "helm"
HELM = shutil.which("helm", path=str(Path(sys.executable).parent)) or shutil.which("helm")

needs_helm = pytest.mark.skipif(
    HELM is None, reason="helm is not installed: `make helm`, or https://helm.sh/docs/intro/install"
)


class RefusedError(Exception):
    """Helm refused the values or the chart; the message is Helm's."""


def helm(*arguments: str, kubeconfig: Path | None = None) -> str:
    """The output of a helm command, which reads and writes no configuration of the user."""
    assert HELM is not None
    with TemporaryDirectory() as home:
        variables = {"HOME": home, "KUBECONFIG": str(kubeconfig or Path(home, "none"))}
        ran = subprocess.run(
            [HELM, *arguments], check=False, capture_output=True, text=True, env=variables
        )
    if ran.returncode:
        raise RefusedError(ran.stderr)
    return ran.stdout


def rendered(
    *flags: str, release: str = "stowage", namespace: str = "stowage-system"
) -> list[Json]:
    """The objects that ``helm install`` creates."""
    text = helm("template", release, str(CHART), "--namespace", namespace, *flags)
    return [found for found in yaml.safe_load_all(text) if found]
