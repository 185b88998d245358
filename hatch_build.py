"""The wheel brings compiled kernels, if it is asked to.

``SHOAL_BUILD_LEVELS`` names levels of CPU, "x86-64-v3" for one; the packs are then built by
tools/build_machine_code.py for the Python, numba and numpy of this environment (build without isolation). Without it,
and always for a source archive or an editable install, the wheel is pure Python, and kernels are compiled on first use.

``SHOAL_BUILD_PACKS``: more packs, built before with other versions of numba.
``SHOAL_BUILD_GROUPS``: parts of the exercise of ``shoal.warm_up``, for a quick build.
``SHOAL_BUILD_PLATFORM``: the platform in the name of the wheel, "manylinux_2_28_x86_64" for a release.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class MachineCodeHook(BuildHookInterface):
    """Builds the packs and puts them into the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before the files of the wheel are collected."""
        levels = os.environ.get("SHOAL_BUILD_LEVELS", "").split()
        if self.target_name != "wheel" or version == "editable" or not levels:
            return
        self.folder = tempfile.TemporaryDirectory(prefix="shoal-packs-")
        tool = Path(self.root, "tools", "build_machine_code.py")
        groups = os.environ.get("SHOAL_BUILD_GROUPS", "").split()
        for level in levels:
            subprocess.run([sys.executable, str(tool), level, self.folder.name, *groups], check=True)
        more = [Path(text) for text in os.environ.get("SHOAL_BUILD_PACKS", "").split()]
        for pack in [*Path(self.folder.name).glob("*.pack"), *more]:
            build_data["force_include"][str(pack)] = f"shoal/machine_code/shipped/{pack.name}"
        python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
        platform = os.environ.get("SHOAL_BUILD_PLATFORM", sysconfig.get_platform())
        build_data["pure_python"] = False
        build_data["tag"] = f"{python}-{python}-{platform.replace('-', '_').replace('.', '_')}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Called when the wheel is written."""
        if hasattr(self, "folder"):
            self.folder.cleanup()
