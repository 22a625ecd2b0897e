"""What the site needs and no chapter does: the Sphinx extension and its parts."""
