"""Metrics of scores: how well they order, and how well they are calibrated."""
