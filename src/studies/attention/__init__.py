"""The evidence of the chapter *attention*."""
