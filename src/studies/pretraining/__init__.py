"""The evidence of the chapter *pretraining*."""
