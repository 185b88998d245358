"""Run every benchmark, one after another, each in a process of its own; results go to ``benchmarks/results``.

python benchmarks/run.py            # all of them
python benchmarks/run.py kmeans     # those whose name begins so
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent


def main(prefixes: list[str]) -> int:
    not_measuring = {"run.py", "measured.py", "results_page.py"}
    scripts = [p for p in sorted(HERE.glob("*.py")) if p.name not in not_measuring and "__main__" in p.read_text()]
    chosen = [path for path in scripts if not prefixes or path.name.startswith(tuple(prefixes))]
    if not chosen:
        print(f"no benchmark begins with {' or '.join(prefixes)}; there are: {', '.join(p.stem for p in scripts)}")
        return 2
    failed = []
    for script in chosen:
        print(f"== {script.stem}", flush=True)
        began = time.perf_counter()
        if subprocess.run([sys.executable, str(script)], cwd=HERE.parent).returncode:
            failed.append(script.stem)
        print(f"== {script.stem}: {time.perf_counter() - began:.0f} s", flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
