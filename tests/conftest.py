"""Shared by every test: a steady numpy seed policy is each test's own business; this file only sets the stage."""

from __future__ import annotations

import signal
import threading

from hypothesis import HealthCheck, settings

# Kernels compile on first use, which is no fault of the case under test.
settings.register_profile("shoal", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shoal")

# A shell starts what it runs in the background with Ctrl-C ignored; tests of Ctrl-C want it heard there, too.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)
