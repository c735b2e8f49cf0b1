"""The metrics of records that come in pieces: summaries, and Dask collections."""
