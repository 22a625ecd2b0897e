"""The evidence of the chapter *scaling*."""
