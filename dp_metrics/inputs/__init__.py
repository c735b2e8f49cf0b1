"""What may come in: records, options, losses and epsilon, each with one checker."""
