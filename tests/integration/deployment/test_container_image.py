"""The steps of the Dockerfile, run in a folder; no container engine is needed."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from tests.support.installed_packages import link_packages

ROOT = Path(__file__).parents[3]
VERSION = (ROOT / "scheduler/stowage/VERSION").read_text().strip()


#: The first is how the tests find the packages; the second would leave the bytecode out.
_NOT_IN_A_BUILD = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE"}


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

    Nothing is downloaded: the packages of requirements/run.txt are linked from the environment of
    the tests, whose tools are used in place of those of requirements/build.txt.
    """
    folder = tmp_path_factory.mktemp("image")
    (folder / "src").mkdir()
    (folder / "opt").mkdir()
    for source in _copied():
        _copy(ROOT / source, folder / "src" / source)
    for keyword, rest in _build_stage():
        if keyword == "RUN":
            _run(rest, folder)
    return folder


def _run(command: str, folder: Path) -> None:
    if "requirements/build.txt" in command:
        return
    if '"$LOCKED"' in command:
        command = command.partition(" && ")[0]
    tools = str(Path(sys.executable).parent)
    for path, replacement in {
        "/opt/build/bin": shlex.quote(tools),
        "/opt/stowage": f"{folder}/opt/stowage",
        "/wheels": f"{folder}/wheels",
    }.items():
        command = command.replace(path, replacement)
    subprocess.run(
        ["sh", "-c", command],
        cwd=folder / "src",
        env={
            **{key: value for key, value in os.environ.items() if key not in _NOT_IN_A_BUILD},
            "PIP_NO_INDEX": "1",
            "PIP_NO_DEPS": "1",
            "PIP_QUIET": "1",
            "VERSION": VERSION,
            "PATH": f"{tools}:{os.environ['PATH']}",
        },
        check=True,
        timeout=WAIT_TIMEOUT_S,
    )
    if command.startswith("python -m venv"):
        (packages,) = folder.glob("opt/stowage/lib/*/site-packages")
        link_packages(_locked_packages(), packages)


def _locked_packages() -> set[NormalizedName]:
    """The packages of requirements/run.txt that this Python installs on this machine."""
    text = (ROOT / "requirements/run.txt").read_text(encoding="utf-8")
    locked = [Requirement(line) for line in re.findall(r"(?m)^(\w[^\\]*)", text)]
    return {
        canonicalize_name(each.name)
        for each in locked
        if each.marker is None or each.marker.evaluate()
    }


def _copy(source: Path, target: Path) -> None:
    """Copy without bytecode, which other processes may be writing."""
    if source.is_dir():
        shutil.copytree(
            source, target, ignore=shutil.ignore_patterns("__pycache__", "node_modules")
        )
    else:
        shutil.copy(source, target)


def test_the_image_contains_only_the_scheduler(image: Path) -> None:
    (wheel,) = (image / "wheels").glob("*.whl")
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert tops == {"stowage", f"stowage-{VERSION}.dist-info"}


@pytest.mark.parametrize("arguments", [("--help",), ("run", "--help")])
def test_the_installed_package_runs_with_the_locked_packages_alone(
    image: Path, arguments: tuple[str, ...]
) -> None:
    answer = subprocess.run(
        [str(image / "opt/stowage/bin/stowage"), *arguments],
        cwd=image,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
        timeout=WAIT_TIMEOUT_S,
    )
    assert "Usage: stowage" in answer.stdout


def test_the_image_contains_the_bytecode_of_the_scheduler(image: Path) -> None:
    (package,) = (image / "opt/stowage").glob("lib/*/site-packages/stowage")
    modules = list(package.rglob("*.py"))
    assert modules
    assert len(list(package.rglob("*.pyc"))) == len(modules)


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


def _labels() -> dict[str, str]:
    (labels,) = [rest for keyword, rest in _instructions() if keyword == "LABEL"]
    return dict(re.findall(r'org\.opencontainers\.image\.([a-z.]+)="([^"]*)"', labels))


def test_labels_say_what_the_metadata_of_the_package_says() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    labels = _labels()
    assert labels["title"].lower() == project["name"]
    assert labels["description"] == project["description"]
    assert labels["licenses"] == project["license"]
    assert labels["version"] == "${VERSION}"
    assert labels["base.name"] == "${PYTHON_IMAGE}"


def test_the_argument_and_the_manifests_have_the_current_version() -> None:
    defaults = [rest for keyword, rest in _instructions() if keyword == "ARG"]
    assert f"VERSION={VERSION}" in defaults
    kustomization = yaml.safe_load((ROOT / "manifests/base/kustomization.yaml").read_text())
    assert [image["newTag"] for image in kustomization["images"]] == [VERSION]
    static_pod = (ROOT / "manifests/static-pod/stowage.yaml").read_text()
    assert re.findall(r"image: stowage:(\S+)", static_pod) == [VERSION]


def test_the_image_contains_no_optional_packages_unless_asked_for() -> None:
    arguments = [rest for keyword, rest in _build_stage() if keyword == "ARG"]
    assert "LOCKED=requirements/run.txt" in arguments


def test_a_build_with_the_wrong_version_fails() -> None:
    (check,) = [rest for word, rest in _build_stage() if word == "RUN" and rest.startswith("test ")]
    answers = [
        subprocess.run(["sh", "-c", check], cwd=ROOT, env={"VERSION": version}, check=False)
        for version in (VERSION, "9.9.9")
    ]
    assert [answer.returncode for answer in answers] == [0, 1]


def test_everything_is_installed_by_hash_or_from_this_repository() -> None:
    runs = [rest for keyword, rest in _build_stage() if keyword == "RUN"]
    installs = re.findall(r"pip [^&]*?\binstall [^&]*", " && ".join(runs))
    assert len(installs) == 3
    for install in installs:
        assert "--require-hashes" in install or "--no-index" in install
    assert "--no-build-isolation" in " ".join(runs)


def test_the_image_lists_its_packages_in_cyclonedx(image: Path) -> None:
    listed = json.loads((image / "opt/stowage/sbom.cdx.json").read_text(encoding="utf-8"))
    assert listed["bomFormat"] == "CycloneDX"
    names = {canonicalize_name(each["name"]) for each in listed["components"]}
    assert names == _locked_packages() | {"stowage"}
    (ours,) = [each for each in listed["components"] if each["name"] == "stowage"]
    assert ours["version"] == VERSION
