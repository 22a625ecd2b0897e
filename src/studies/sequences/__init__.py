"""The evidence of the chapter *sequences*."""
