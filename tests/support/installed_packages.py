"""The packages installed in the virtual environment, without Stowage's own distributions."""

import sysconfig
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
