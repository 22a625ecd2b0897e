"""Grading: readers' notebooks run shut in, the course's own checks judge them outside."""
