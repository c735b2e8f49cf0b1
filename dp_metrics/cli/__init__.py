"""The command line `dp-metrics`: a module for each command or two."""
