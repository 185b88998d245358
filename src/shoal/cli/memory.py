"""How much memory this process has held at most."""

from __future__ import annotations

import sys


def peak_mb() -> float:
    """The peak of resident memory in megabytes (10^6 bytes).

    >>> peak_mb() > 1
    True
    """
    try:
        # VmHWM begins anew with the program; getrusage would carry on the peak of the process that started it.
        with open("/proc/self/status") as file:
            line = next(line for line in file if line.startswith("VmHWM"))
        return round(int(line.split()[1]) * 1024 / 1e6, 1)
    except (OSError, StopIteration):
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6, 1)
