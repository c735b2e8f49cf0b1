"""The faults of `load.py`: each module makes some of them and says which promises held."""
