"""The metrics inside scikit-learn's model selection: scorers, search, and the count of releases."""
