"""The experiments of the paper, and their plots; needs the `evaluation` extra."""
