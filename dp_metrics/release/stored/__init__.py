"""Releases as a budget keeps them: what was asked for, what was released, and how either is made again."""
