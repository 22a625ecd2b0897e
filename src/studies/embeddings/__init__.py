"""The evidence of the chapter *embeddings*."""
