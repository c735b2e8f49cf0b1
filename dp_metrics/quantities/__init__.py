"""What can be released: quantities (public), what has to be known of records (private), and noise (public)."""
