"""Send what the OpenAPI document allows, and what it does not, to every route: there may be no server error.

python benchmarks/service_fuzz.py [examples]
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from common import record
from service.samples import items, learned, new_model, running


def main() -> None:
    n_examples = sys.argv[1] if len(sys.argv) > 1 else "25"
    with tempfile.TemporaryDirectory() as folder, running(Path(folder) / "fuzz", new_model("bernoulli")) as client:
        learned(client, items(300))
        done = subprocess.run(
            [Path(sys.executable).parent / "schemathesis", "run", client.url + "/openapi.json",
             "--exclude-path", "/events/stream", "--checks", "not_a_server_error", "--max-examples", n_examples,
             "--suppress-health-check", "all", "--no-color"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        print(done.stdout[-3000:])
        cases = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
        assert cases is not None, done.stderr
        alive = client.get("/healthz").status_code
        record(
            "service", workload="schemathesis", cases=int(cases[1]), passed=int(cases[2]),
            server_errors=int(cases[1]) - int(cases[2]), alive=alive,
        )  # fmt: skip


if __name__ == "__main__":
    main()
