"""The same metrics for each group of people."""
