"""What the site needs and no chapter does: the Sphinx extension and its parts."""

from importlib import import_module

PARTS = (
    *(
        "pages.glue",
        "pages.outputs",
        "pages.renderer",
        "pages.proofs",
        "pages.first_screen",
    ),
    *("pages.findings", "pages.drawings", "pages.tasks", "pages.choices", "pages.frame"),
    *("pages.ways", "pages.search", "pages.course_map", "pages.teaching"),
    *("pages.surprise", "publish.assets", "publish.notebooks"),
)


def setup(app) -> dict:
    """Set up the parts of the extension in ``app``, a Sphinx application."""
    for part in PARTS:
        import_module(f"lmbook.{part}").setup(app)
    return {"env_version": 1, "parallel_read_safe": False, "parallel_write_safe": True}
