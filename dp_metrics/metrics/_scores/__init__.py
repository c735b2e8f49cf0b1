"""Scores of two classes: how records are read, counted, and what follows from noisy counts."""
