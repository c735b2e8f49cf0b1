"""Experiments, plots and the command line; needs the `evaluation` extra."""
