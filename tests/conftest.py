from hypothesis import HealthCheck, settings

# The same examples in every run: a failure is a change of the code, never of the luck.
settings.register_profile(
    "reproducible",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("reproducible")
