"""What may come in, each through one door: arrays, labels, records, options, and what a model says."""
