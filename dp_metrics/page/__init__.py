"""The whole evaluation of a model in one release, and the page that shows it."""
