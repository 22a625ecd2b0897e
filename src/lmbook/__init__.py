"""What the site needs and no chapter does: the Sphinx extension and its parts."""


def setup(app) -> dict:
    """Set up the extension: outputs, view renderer, local libraries, notebooks."""
    from lmbook import assets, build, notebooks, outputs, proofs, renderer

    for part in (outputs, renderer, proofs, assets, notebooks, build):
        part.setup(app)
    return {"env_version": 1, "parallel_read_safe": False, "parallel_write_safe": True}
