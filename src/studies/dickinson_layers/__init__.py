"""The evidence of the chapter *dickinson-layers*."""
