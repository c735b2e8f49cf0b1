"""How far a metric can move: exact sums, extremes, and output bounds by rank."""
