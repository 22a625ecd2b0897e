"""The evidence of the chapter *tokenization*."""
