"""The one path of a release: shape, plan, read, spend, draw."""
