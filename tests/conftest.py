"""What all tests share: hypothesis hunts on every run and prints how to reproduce what it finds."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "hunt",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("hunt")
