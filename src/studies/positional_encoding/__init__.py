"""The evidence of the chapter *positional-encoding*."""
