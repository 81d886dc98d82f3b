"""The packages installed in the virtual environment, without Stowage's own distributions."""

import sysconfig
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path


def link_dependencies(folder: Path) -> Path:
    """Fill a folder with links to every installed package except Stowage's own.

    With that folder on the path, a program sees the dependencies but neither the packages of this
    repository nor the commands that they register.
    """
    for installed in Path(sysconfig.get_path("purelib")).iterdir():
        if not installed.name.startswith(("stowage", "__editable__")):
            (folder / installed.name).symlink_to(installed)
    return folder


def link_packages(names: Iterable[str], folder: Path) -> None:
    """Fill a folder with links to these packages and their metadata."""
    installed = Path(sysconfig.get_path("purelib"))
    for name in names:
        for top in {file.parts[0] for file in distribution(name).files or ()} - {
            "..",
            "__pycache__",
        }:
            (folder / top).symlink_to(installed / top)
