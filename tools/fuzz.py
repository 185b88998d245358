"""Random damage of the kinds that an enemy could do, until the time is up.

    python tools/fuzz.py model-files --minutes 10 [--seed 0] [--trials 100] [--models kmeans,stream]
    python tools/fuzz.py estimators --minutes 10 [--models SphericalKMeans]
    make fuzz MINUTES=60

``model-files``: a model is saved, its JSON and arrays are changed, and it is written again with a right checksum. Then
it is loaded, asked, taught and saved. Right is: refused with a ShoalError, or used. Wrong is: a crash, a hang, an error
that is not shoal's own (an IndexError of a kernel with bounds checks among them).

``files``: tools/fuzz_files.py. ``estimators``: tools/fuzz_estimators.py.

Each trial runs in a forked process with a limit of time and memory. Run it with NUMBA_BOUNDSCHECK=1, as ``make fuzz``
does, to notice what would go unnoticed. Every wrong trial is printed with the seed that makes it again
(``--seed SEED --trials 1``), and its file is kept in the folder that ``--keep`` names.
"""

from __future__ import annotations

import argparse
import collections
import copy
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import fuzz_estimators
import fuzz_files
import numpy as np
import scipy.sparse as sp

CPU_SECONDS, SECONDS = 40, 400  # for one trial; an honest one takes less than one, and compiling may take ten
MEMORY = 6 << 30
EXTREMES = (-1, 0, 1, 2, 255, 2**31 - 1, -(2**31), 2**62, -(2**62), 10**6, float("nan"), float("inf"), 1e300, -1e300)
LEAVES: tuple[Any, ...] = (None, True, -1, 0, 2**40, 1e300, "", "text", [], {}, [1, 2], {"$": "tuple", "items": []})


def main() -> int:
    """Run trials and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=["model-files", "files", "estimators"])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--trials", type=int, default=10**9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", default=None)
    parser.add_argument("--keep", type=Path, default=None)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(prefix="shoal-fuzz-") as folder:
        return run(Path(folder), options)


def run(folder: Path, options: argparse.Namespace) -> int:
    """Trials in turn over the models or formats; 1 if one was wrong."""
    wanted = options.models.split(",") if options.models else list(TARGETS[options.target])
    names, work = prepared(options.target, wanted, folder)
    wrong = len(wanted) - len(names)
    counts: dict[str, collections.Counter[str]] = {name: collections.Counter() for name in names}
    end = time.monotonic() + 60 * options.minutes
    for seed in range(options.seed, options.seed + options.trials if names else options.seed):
        if time.monotonic() > end:
            break
        name = names[seed % len(names)]
        outcome, detail = in_fork(partial(work, name, seed))
        counts[name][outcome] += 1
        if outcome not in ("refused", "used", "refused later"):
            wrong += 1
            print(f"seed {seed} {name}: {outcome}: {detail}", flush=True)
            if options.keep is not None:
                keep(folder, options.keep / f"{name}-{seed}")
    for name, found in counts.items():
        print(json.dumps({"target": options.target, "model": name, "trials": found.total(), **found}), flush=True)
    return 1 if wrong else 0


def prepared(target: str, wanted: list[str], folder: Path) -> tuple[list[str], Callable[[str, int], tuple[str, str]]]:
    """What can be tried, with its kernels compiled before any process is forked, and one trial of it."""
    if target == "estimators":
        fuzz_estimators.compile_kernels(wanted)
        return wanted, fuzz_estimators.trial
    if target == "files":
        fuzz_files.prepare(folder)
        return wanted, lambda name, seed: fuzz_files.trial(name, folder, seed)
    return [name for name in wanted if prepare(name, folder)], lambda name, seed: trial(name, folder, seed)


def keep(folder: Path, name: Path) -> None:
    """The file of a trial that was wrong."""
    name.parent.mkdir(parents=True, exist_ok=True)
    changed = [path for path in folder.glob("changed.*") if path.is_file()]
    if changed:
        newest = max(changed, key=lambda path: path.stat().st_mtime)
        shutil.copy(newest, name.with_name(name.name + "".join(newest.suffixes)))


def in_fork(work: Callable[[], tuple[str, str]]) -> tuple[str, str]:
    """The outcome of the work, or how its process ended. A signal ends even a kernel that never returns."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        try:
            os.write(writer, json.dumps([part[:3_000] for part in work()]).encode())
        except BaseException:
            os.write(writer, json.dumps(["error of the trial", last_lines()]).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as file:
        said = file.read()
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        hangs = (signal.SIGALRM, signal.SIGXCPU, signal.SIGKILL)  # the last where the limit of CPU time is a hard one
        return ("hang" if number in hangs else "crash"), signal.Signals(number).name
    outcome, detail = json.loads(said) if said else ("crash", "ended without a word")
    return outcome, detail


# --- models -----------------------------------------------------------------------------------------------------------


def rows(seed: int = 0) -> sp.csr_matrix:
    """60 rows of 30 features in three groups."""
    rng = np.random.default_rng(seed)
    dense = (rng.random((60, 30)) < 0.3) * (np.arange(30) // 10 == np.arange(60)[:, None] % 3)
    dense[:, 0] = 1
    return sp.csr_matrix(dense.astype(float))


def measurements(seed: int = 0) -> np.ndarray:
    """60 rows of four numbers."""
    return np.random.default_rng(seed).normal(size=(60, 4)) + np.repeat(np.eye(4)[:3] * 6, 20, axis=0)


def shares(seed: int = 0) -> np.ndarray:
    """60 rows of the parameters of a Beta distribution."""
    return np.exp(measurements(seed) / 4)


def _makers() -> dict[str, Callable[[], Any]]:
    import shoal
    from shoal.streams import ExponentialKernel

    times = np.arange(60) * 3600.0
    mixture, stream = shoal.ExponentialFamilyMixture, shoal.TimeSensitiveMixture
    return {
        "kmeans": lambda: shoal.SphericalKMeans(3, random_state=np.random.RandomState(0)).fit(rows()),
        "kmeans-sparse": lambda: shoal.SphericalKMeans(3, algorithm="sparse", random_state=0).fit(rows()),
        "bernoulli": lambda: shoal.BernoulliMixture(3, random_state=0).fit(rows()),
        "bernoulli-em": lambda: shoal.BernoulliMixture(3, inference="em", random_state=0).fit(rows()),
        "mixture": lambda: mixture(3, n_sweeps=6, random_state=0).fit(rows()),
        "gaussian": lambda: mixture(3, family="gaussian", n_sweeps=6, random_state=0).fit(measurements()),
        "stream": lambda: stream(random_state=0).fit(rows(), times).partial_fit(rows(1), times + 3e5),
        "stream-decay": lambda: stream(ExponentialKernel(1e-5), random_state=0).fit(rows(), times),
        "densities": lambda: shoal.DensityKMeans(3, family="beta", random_state=0).fit(shares()),
        "suggester": lambda: shoal.Suggester().fit(rows()),
    }


MAKERS = (
    "kmeans",
    "kmeans-sparse",
    "bernoulli",
    "bernoulli-em",
    "mixture",
    "gaussian",
    "stream",
    "stream-decay",
    "densities",
    "suggester",
)
TARGETS = {"model-files": MAKERS, "files": fuzz_files.NAMES, "estimators": fuzz_estimators.NAMES}


def prepare(name: str, folder: Path) -> bool:
    """A saved model of this kind; used once, so that its kernels are compiled before the first trial.

    False, with a word, if the undamaged model cannot be used.
    """
    import shoal
    from shoal.data.vocabulary import Vocabulary

    model = _makers()[name]()
    if not isinstance(getattr(model, "n_features_in_", None), int) or model.n_features_in_ == 30:
        model.vocabulary_ = Vocabulary([f"w{at}" for at in range(30)])
    shoal.save(folder / f"{name}.shoal", model)
    try:
        use(shoal.load(folder / f"{name}.shoal"), folder)
    except Exception:
        print(f"{name} undamaged: {last_lines()}", flush=True)
        return False
    return True


def use(model: Any, folder: Path) -> int:
    """Ask, describe, teach and save the model; how many of the steps it refused."""
    import shoal
    from shoal.errors import ShoalError

    X: Any = shares(2) if getattr(model, "n_features_in_", 30) == 4 else rows(2)
    refused = 0
    for step in steps(model, X):
        try:
            step()
        except ShoalError:
            refused += 1
        except NotImplementedError:
            pass
    shoal.save(folder / "again.shoal", model)
    return refused


def steps(model: Any, X: Any) -> Iterator[Callable[[], Any]]:
    """What a user does with a model."""
    import shoal

    for name in ("predict", "assign", "predict_proba", "memberships", "score_samples", "transform"):
        if hasattr(model, name) and hasattr(model, "predict"):
            yield lambda name=name: getattr(model, name)(X)
    if hasattr(model, "suggest"):
        yield lambda: model.suggest(["w1", "w2"], n=3)
    if hasattr(model, "cluster_ids_"):
        yield lambda: [model.top_features(int(one), 3) for one in model.cluster_ids_[:3]]
        yield lambda: shoal.cluster_cards(model)
    if hasattr(model, "partial_fit") and type(model).__name__ == "TimeSensitiveMixture":
        yield lambda: model.partial_fit(X, 1e6 + np.arange(60) * 3600.0)
    elif hasattr(model, "partial_fit"):
        yield lambda: model.partial_fit(X)


# --- damage -----------------------------------------------------------------------------------------------------------


def trial(name: str, folder: Path, seed: int) -> tuple[str, str]:
    """Change a file, load it, use it."""
    import shoal
    from shoal.errors import BadModelFile

    changed = folder / "changed.shoal"
    what = damage(folder / f"{name}.shoal", changed, np.random.default_rng(seed))
    try:
        model = shoal.load(changed)
    except BadModelFile:
        return "refused", what
    except Exception:
        return "error of load", f"{what}: {last_lines()}"
    try:
        refused = use(model, folder)
    except Exception:
        return "error of use", f"{what}: {last_lines()}"
    return ("refused later" if refused else "used"), what


def last_lines() -> str:
    """The error and where it came from."""
    lines = [line.strip() for line in traceback.format_exc().strip().splitlines()]
    places = [line for line in lines if line.startswith("File")]
    return f"{lines[-1][:200]} ({places[-1] if places else ''})"


def damage(source: Path, target: Path, rng: np.random.Generator) -> str:
    """The file with one to three changes and a right checksum; the changes in words."""
    from shoal.store import container

    with container.ModelFile(source) as file:
        facts, arrays = json.loads(file.header.text), {name: one.copy() for name, one in file.arrays().items()}
    said = [
        change_array(arrays, rng) if rng.random() < 0.6 else change_json(facts["model"], rng)
        for _ in range(rng.choice([1, 1, 1, 2, 3]))
    ]
    container.write(target, json.dumps(facts), arrays)
    return "; ".join(said)


def change_array(arrays: dict[str, np.ndarray], rng: np.random.Generator) -> str:
    """An array with other numbers, another length, shape or kind."""
    name = str(rng.choice(sorted(arrays)))
    array = arrays[name]
    kind = str(rng.choice(["set", "set", "set", "fill", "cut", "longer", "type", "shape", "swap", "shuffle"]))
    if kind in ("set", "fill") and array.size:
        with np.errstate(all="ignore"):
            value = np.array([rng.choice(np.array(EXTREMES, dtype=object))]).astype(float).astype(array.dtype)[0]
        if array.dtype.kind in "iu" and rng.random() < 0.5:
            value = array.dtype.type(rng.integers(0, array.size + 2))
        if kind == "set":
            array.reshape(-1)[rng.integers(array.size)] = value
        else:
            array[...] = value
    elif kind == "cut" and array.ndim:
        arrays[name] = array[: max(0, array.shape[0] - int(rng.integers(1, 5)))].copy()
    elif kind == "longer" and array.ndim and array.size:
        arrays[name] = np.concatenate([array, array[-1:]])
    elif kind == "type":
        dtype = str(rng.choice(["i1", "i4", "i8", "u8", "f4", "f8", "b1"]))
        with np.errstate(all="ignore"):
            arrays[name] = array.astype(dtype)
        kind += f" {dtype}"
    elif kind == "shape":
        arrays[name] = array.reshape(-1, 1) if rng.random() < 0.5 else array.reshape(1, -1)
    elif kind == "swap":
        other = str(rng.choice(sorted(arrays)))
        arrays[name], arrays[other] = arrays[other], arrays[name]
        kind += f" {other}"
    elif array.size:
        rng.shuffle(array.reshape(-1))
    return f"{name} {kind}"


def change_json(model: dict[str, Any], rng: np.random.Generator) -> str:
    """A value of the JSON replaced, removed, or taken from elsewhere."""
    places = list(walk(model, "model"))
    holder, key, where = places[rng.integers(len(places))]
    action = str(rng.choice(["replace", "remove", "copy", "number"]))
    value = holder[key]
    if action == "number" and isinstance(value, int | float) and not isinstance(value, bool):
        holder[key] = type(value)(rng.choice([-1, 0, 1, 7, 10**9])) if isinstance(value, int) else float(value) * -1e9
    elif action == "remove":
        del holder[key]
    elif action == "copy":
        other, other_key, _ = places[rng.integers(len(places))]
        holder[key] = copy.deepcopy(other.get(other_key) if isinstance(other, dict) else None)
    else:
        holder[key] = copy.deepcopy(LEAVES[rng.integers(len(LEAVES))])
    return f"{where} {action}"


def walk(value: Any, where: str) -> Iterator[tuple[Any, Any, str]]:
    """Every place in the JSON: what holds it, under which key, and its path in words."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(items):
        yield value, key, f"{where}.{key}"
        yield from walk(item, f"{where}.{key}")


if __name__ == "__main__":
    sys.exit(main())
