"""The evidence of the chapter *beyond-text*."""
