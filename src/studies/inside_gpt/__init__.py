"""The evidence of the chapter *inside-gpt*."""
