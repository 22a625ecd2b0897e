"""The evidence of the chapter *mini-gpt*."""
