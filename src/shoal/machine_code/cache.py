"""The object numba asks for the code of a kernel."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

from numba.core.dispatcher import Dispatcher

from shoal.machine_code import entries, keys, packs, storage


class Loaded(NamedTuple):
    """An entry that this process has loaded."""

    key: str
    kernel: str  # "shoal.kmeans.exact_kernels.nearest"
    source: str  # "shipped": from a pack, "kept": from the folder of the user


loaded: list[Loaded] = []
compiled: list[str] = []  # names of the kernels that this process has compiled


class KernelCache:
    """The cache of one kernel, with the methods of ``numba.core.caching._Cache``.

    Any exception in here means "not there": numba then compiles, as it would without a cache.
    """

    def __init__(self, dispatcher: Dispatcher) -> None:
        self.dispatcher = dispatcher
        self.enabled = True

    @property
    def cache_path(self) -> str | None:
        """Where compiled code goes, for ``dispatcher.stats``."""
        folder = storage.user_folder()
        return str(folder.path) if folder else None

    def enable(self) -> None:
        """Read and write again."""
        self.enabled = True

    def disable(self) -> None:
        """Neither read nor write."""
        self.enabled = False

    def flush(self) -> None:
        """Nothing is kept back: an entry is written when the kernel has been compiled."""

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The compiled kernel for these types, or None."""
        if not self.enabled or storage.switched_off():
            return None
        with contextlib.suppress(Exception):
            target.refresh()  # numba's own declarations, which the compiler would have loaded
            return self._load(keys.key_of(self.dispatcher, signature), target)
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep a kernel that has just been compiled."""
        compiled.append(self._name())
        if not self.enabled or storage.switched_off():
            return
        with contextlib.suppress(Exception):
            key = keys.key_of(self.dispatcher, signature)
            entries.claim_symbol(result.fndesc.llvm_func_name, key)
            folder = storage.user_folder()
            # Addresses in the code, and loops compiled apart, belong to this process.
            if folder and not result.lifted and not result.library.has_dynamic_globals:
                folder.put(key, entries.to_bytes(result))

    def _load(self, key: str, target: Any) -> Any:
        pack = packs.shipped_pack()
        payload = pack.get(key) if pack else None
        if payload is not None:
            with contextlib.suppress(Exception):
                return self._noted(key, "shipped", entries.from_bytes(key, payload, target))
        folder = storage.user_folder()
        payload = folder.get(key) if folder else None
        if folder is None or payload is None:
            return None
        try:
            return self._noted(key, "kept", entries.from_bytes(key, payload, target))
        except entries.SymbolTaken:
            return None
        except Exception:
            folder.discard(key)
            return None

    def _noted(self, key: str, source: str, result: Any) -> Any:
        loaded.append(Loaded(key, self._name(), source))
        return result

    def _name(self) -> str:
        return f"{self.dispatcher.py_func.__module__}.{self.dispatcher.py_func.__qualname__}"
