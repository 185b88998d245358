"""Shared by every test: a steady numpy seed policy is each test's own business; this file only sets the stage."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Kernels compile on first use, which is no fault of the case under test.
settings.register_profile("shoal", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shoal")
