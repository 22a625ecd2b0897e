"""The evidence of the chapter *fine-tuning*."""
