"""The one path of a release: from queries to output bounds, spend and draw."""
