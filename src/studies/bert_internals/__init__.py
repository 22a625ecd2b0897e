"""The evidence of the chapter *bert-internals*."""
