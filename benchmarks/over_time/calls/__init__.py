"""What asv times: see `benchmarks/over_time/compare`."""
