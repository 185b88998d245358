"""Compiled kernels that outlast the process: those shipped in the wheel, and those compiled on this machine.

Numba asks a cache for the code of a kernel before it compiles it, and offers the code afterwards. ``KernelCache`` is
such a cache. It reads the packs of the wheel first and a folder of this user's after that, and it writes only to the
latter. It never makes a call fail: code that cannot be read, or that does not match its checksum, counts as absent, and
the kernel is compiled.

``keys``
    What the code of a kernel depends on, as a digest. No dates and no file names: editing a comment changes nothing,
    and editing a constant or a kernel in another file changes every kernel that uses it.
``entries``
    One compiled kernel as bytes, and back.
``storage``, ``packs``
    Where entries are kept: the folder of the user, the packs of the wheel.
``cache``
    The object numba asks.

``SHOAL_MACHINE_CODE=off`` compiles everything in every process; ``SHOAL_MACHINE_CODE=kept`` leaves the packs unused.
``SHOAL_CACHE_DIR`` names another folder.
"""

from shoal.machine_code.cache import KernelCache

__all__ = ["KernelCache"]
