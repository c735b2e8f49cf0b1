"""Metrics of true and predicted labels: what can be counted in a confusion matrix."""
