"""What a plan releases: a file for each kind of part, with what has to be known of the records for it."""
