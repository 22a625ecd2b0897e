"""The evidence of the chapter *preferences*."""
