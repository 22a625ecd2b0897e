"""The evidence: one module a study; it alone writes ``data/studies``."""
