"""The models that run in the page: their files and their scripts."""
