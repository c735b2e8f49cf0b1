"""What can be released: quantities and noise, which are public, and the private stats of records."""
