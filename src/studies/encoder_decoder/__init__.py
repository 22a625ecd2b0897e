"""The evidence of the chapter *encoder-decoder*."""
