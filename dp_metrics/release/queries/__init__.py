"""What a plan releases of its records: a file for each kind of query."""
