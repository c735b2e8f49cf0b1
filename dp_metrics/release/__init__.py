"""The one path of a release: shape, query, read, spend, draw."""
