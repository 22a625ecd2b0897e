"""What the site serves beside its pages: libraries, and the chapters as notebooks."""
