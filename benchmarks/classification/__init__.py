"""Parts of `benchmarks/classifiers.py`: data and models, and a module for each table."""
