"""A GPT that can be read in one sitting and trained in a minute: one subject a module."""
