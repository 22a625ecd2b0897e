"""The site: directives and renderers of its pages."""
