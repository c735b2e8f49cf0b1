"""Exact laws of releases, never private: the auditor and the planner."""
