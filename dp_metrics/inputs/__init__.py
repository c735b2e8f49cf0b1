"""What may come in: records and their public shape, options, losses and epsilon, each with one checker."""
