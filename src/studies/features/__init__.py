"""The evidence of the chapter *features*."""
