"""The steps of the Dockerfile, run in a folder; no container engine is needed."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from tests.support.installed_packages import link_dependencies

ROOT = Path(__file__).parents[3]
VERSION = (ROOT / "scheduler/stowage/VERSION").read_text().strip()


def _instructions() -> list[tuple[str, str]]:
    """Keyword and arguments of each instruction; continued lines are joined."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    split = [line.partition(" ") for line in lines]
    return [(keyword, rest) for keyword, _, rest in split]


def _build_stage() -> list[tuple[str, str]]:
    instructions = _instructions()
    first, second = [index for index, (word, _) in enumerate(instructions) if word == "FROM"]
    return instructions[first + 1 : second]


def _copied() -> list[str]:
    copies = [rest.split() for keyword, rest in _build_stage() if keyword == "COPY"]
    return [source for words in copies for source in words[:-1]]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``src``, ``wheels`` and ``opt/stowage``, as the build stage leaves them.

    Dependencies are neither downloaded nor installed: they are here already.
    """
    folder = tmp_path_factory.mktemp("image")
    (folder / "src").mkdir()
    (folder / "opt").mkdir()
    for source in _copied():
        _copy(ROOT / source, folder / "src" / source)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    # PIP_NO_BUILD_ISOLATION=0 means: do not isolate.
    pip = {"PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_QUIET": "1"}
    for keyword, rest in _build_stage():
        if keyword == "RUN":
            command = rest.replace("/wheels", f"{folder}/wheels")
            command = command.replace("/opt/stowage", f"{folder}/opt/stowage")
            environment = {**os.environ, **pip, "PATH": path}
            subprocess.run(
                ["sh", "-c", command],
                cwd=folder / "src",
                env=environment,
                check=True,
                timeout=WAIT_TIMEOUT_S,
            )
    return folder


def _copy(source: Path, target: Path) -> None:
    """Copy without bytecode, which other processes may be writing."""
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


def test_the_image_contains_only_the_scheduler(image: Path) -> None:
    (wheel,) = (image / "wheels").glob("*.whl")
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert tops == {"stowage", f"stowage-{VERSION}.dist-info"}


@pytest.mark.parametrize("arguments", [("--help",), ("run", "--help")])
def test_the_installed_package_runs_outside_of_the_repository(
    image: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    dependencies = {"PYTHONPATH": str(link_dependencies(tmp_path))}
    answer = subprocess.run(
        [str(image / "opt/stowage/bin/stowage"), *arguments],
        cwd=image,
        env={"PATH": os.environ["PATH"], **dependencies},
        capture_output=True,
        text=True,
        check=True,
        timeout=WAIT_TIMEOUT_S,
    )
    assert "Usage: stowage" in answer.stdout


def test_the_image_contains_no_pip(image: Path) -> None:
    assert (image / "opt/stowage/bin/stowage").exists()
    assert not (image / "opt/stowage/bin/pip").exists()


def test_copied_files_are_not_in_dockerignore() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in ignored
    assert {f"!{source}" for source in _copied()} == {
        line for line in ignored if line.startswith("!")
    }


def test_every_stage_starts_from_the_base_argument() -> None:
    bases = [rest.split()[0] for keyword, rest in _instructions() if keyword == "FROM"]
    assert bases == ["${PYTHON_IMAGE}"] * 2


def test_the_image_label_and_the_manifests_have_the_current_version() -> None:
    (labels,) = [rest for keyword, rest in _instructions() if keyword == "LABEL"]
    assert f'org.opencontainers.image.version="{VERSION}"' in labels
    kustomization = yaml.safe_load((ROOT / "manifests/base/kustomization.yaml").read_text())
    assert [image["newTag"] for image in kustomization["images"]] == [VERSION]


def test_every_dependency_is_imported_and_has_a_comment() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    names = [
        re.split(r"[><=~ ]", each)[0] for each in tomllib.loads(text)["project"]["dependencies"]
    ]
    sources = "".join(file.read_text() for file in (ROOT / "scheduler").rglob("*.py"))
    modules = {"pyyaml": "yaml"}
    for name in names:
        assert re.search(rf'^ +"{name}[>=~<][^"]*<[^"]*", +# \S', text, re.MULTILINE), name
        module = modules.get(name, name.replace("-", "_"))
        assert re.search(rf"^ *(import|from) {module}\b", sources, re.MULTILINE), name
