"""What the site needs and no chapter does: the Sphinx extension and its parts."""


def setup(app) -> dict:
    """Sphinx extension: honest cache, view renderer, local assets."""
    from lmcourse.book import cache

    cache.setup(app)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
