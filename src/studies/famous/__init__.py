"""The evidence of the page *famous*: published results, asked of the models at hand."""
