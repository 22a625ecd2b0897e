"""The evidence of the chapter *backpropagation*."""
