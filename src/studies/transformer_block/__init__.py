"""The evidence of the chapter *transformer-block*."""
