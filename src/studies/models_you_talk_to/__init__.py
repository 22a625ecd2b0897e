"""The evidence of the chapter *models-you-talk-to*."""
