"""The chapters: executed once, kept, compared with their references."""
