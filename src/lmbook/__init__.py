"""What the site needs and no chapter does: the Sphinx extension and its parts."""

from importlib import import_module

PARTS = (
    "pages.glue",
    "pages.outputs",
    "pages.corrections",
    "pages.proofs",
    "pages.first_screen",
    "pages.findings",
    "pages.drawings",
    "pages.tasks",
    "pages.choices",
    "pages.frame",
    "pages.ways",
    "pages.search",
    "pages.course_map",
    "pages.teaching",
    "pages.surprise",
    "publish.assets",
    "publish.notebooks",
)


def setup(app) -> dict:
    """Set up the parts of the extension in ``app``, a Sphinx application.

    Each is a module of `lmbook` with a function ``setup`` of its own. Return what Sphinx
    wants to know: the version of what is kept of read pages (raise it, and all are read
    anew), and that pages are written, but not read, in several processes.
    """
    for part in PARTS:
        import_module(f"lmbook.{part}").setup(app)
    return {"env_version": 1, "parallel_read_safe": False, "parallel_write_safe": True}
