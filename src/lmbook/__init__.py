"""What the site needs and no chapter does: the Sphinx extension and its parts."""


def setup(app) -> dict:
    """Set up the extension: honest cache, view renderer, local libraries, notebooks."""
    from lmbook import assets, cache, notebooks, renderer

    for part in (cache, renderer, assets, notebooks):
        part.setup(app)
    return {"env_version": 1, "parallel_read_safe": False, "parallel_write_safe": True}
