"""Model files: ``save`` a fitted model with the words it learned from, ``load`` it, ``describe`` a file."""

from __future__ import annotations

import datetime
import json
import os
from typing import Any

import shoal
from shoal.base import Estimator, storable_name
from shoal.errors import BadInput, BadModelFile, ShoalError
from shoal.store import container
from shoal.store.checks import check_model
from shoal.store.decode import Decoder, storable_class
from shoal.store.encode import Encoder, Malformed

FORMAT = 2  # rises when the structure changes; 1 named classes without their package

# What a damaged or hostile structure can raise while it is being read.
_BROKEN = (
    Malformed,
    ShoalError,
    MemoryError,
    KeyError,
    IndexError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
    RecursionError,
)


def save(path: str | os.PathLike[str], model: Estimator, dataset: Any = None) -> None:
    """Write a fitted model to one file: arrays and plain facts, no code.

    With ``dataset``, the file also keeps its vocabulary, the recipe by which it was read (so that new rows can be read
    the same way) and where it came from. The file appears whole or not at all: whatever happens meanwhile, what
    was at ``path`` before stays until the new file is safely on disk. It is then replaced by renaming: so is a
    write-protected file, and a hard link keeps the old content.

    Parameters
    ----------
    path : path
        File to write; an existing one is replaced.
    model : estimator
        A fitted model.
    dataset : Dataset, optional
        The data of the fit, for its vocabulary, recipe and provenance.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from shoal import SphericalKMeans, load, save
    >>> model = SphericalKMeans(2, random_state=0).fit(np.array([[1., 0], [2, 0], [0, 1], [0, 3]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/pairs.shoal", model)
    ...     again = load(f"{folder}/pairs.shoal")
    >>> bool((again.predict([[5., 0], [0, 6]]) == model.predict([[5., 0], [0, 6]])).all())
    True
    """
    if not isinstance(model, Estimator):
        raise BadInput(f"cannot save a {type(model).__name__}: only shoal's models can be saved. Give a fitted model.")
    _require_loadable(model)
    encoder = Encoder()
    state = model.fitted_state() | _from_dataset(dataset)
    if all(value is None for value in state.values()):
        raise BadInput(f"this {type(model).__name__} is not fitted yet: there is nothing to save. Call fit first.")
    provenance = {"saved": _now(), "shoal": shoal.__version__}
    state["provenance_"] = {**state.get("provenance_", {}), **provenance}
    encoded = encoder.model(model, state)
    text = json.dumps({"format": FORMAT, "shoal": shoal.__version__, "model": encoded}, separators=(",", ":"))
    container.write(path, text, encoder.arrays)


def load(path: str | os.PathLike[str], *, in_memory: bool = False) -> Any:
    """The model that :func:`save` wrote, with ``vocabulary_``, ``recipe_`` and ``provenance_`` if they were saved.

    Parameters
    ----------
    path : path
        A file that :func:`save` or ``shoal fit --out`` wrote.
    in_memory : bool
        Copy the arrays. By default they are mapped from the file, read-only: loading is quick, and processes that load
        the same file share the memory. A mapped model *is* the file: saving over it by :func:`save`, or removing it, is
        harmless, but whoever writes into the very file (``cp new.shoal live.shoal``) changes what running readers
        answer, or ends them with a bus error if it gets shorter. Copy under another name and rename, or load a copy.

    Raises
    ------
    BadModelFile
        If the file is cut short, damaged, foreign, written by a shoal with another file format, or contradicts itself.
        The whole file is compared with its checksum first, and every index in it is checked, so that a hostile file is
        refused, too.

    Examples
    --------
    >>> import tempfile
    >>> from shoal import SphericalKMeans, load, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/two.shoal", SphericalKMeans(2, random_state=0).fit([[1.0, 0], [0, 1]]))
    ...     load(f"{folder}/two.shoal").n_clusters_
    2
    """
    with container.ModelFile(path) as file:
        facts = _facts(file.header, path)
        arrays = file.arrays(in_memory=in_memory)
    try:
        return Decoder(arrays, _build_model).decode(facts["model"])
    except _BROKEN as error:
        said = error if isinstance(error, Malformed | ShoalError) else "a structure"
        raise BadModelFile(
            f"{path} is whole, but holds {said} "
            f"that this shoal ({shoal.__version__}) cannot read; it was written by shoal {facts['shoal']}. "
            "Install that version, or fit and save again."
        ) from error


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Metadata of a model file, without reading its arrays: model, params, provenance, arrays, bytes.

    Parameters
    ----------
    path : path
        A model file.

    Examples
    --------
    >>> import tempfile
    >>> from shoal import SphericalKMeans, save
    >>> model = SphericalKMeans(2, random_state=0).fit([[1.0, 0], [0, 1]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/two.shoal", model)
    ...     facts = describe(f"{folder}/two.shoal")
    >>> facts["model"], facts["params"]["n_clusters"]
    ('SphericalKMeans', 2)
    """
    with container.ModelFile(path) as file:
        header, n_bytes = file.header, file.n_bytes
    facts = _facts(header, path)
    arrays = {name: f"{entry['dtype']} {tuple(entry['shape'])}" for name, entry in header.tensors.items()}
    try:
        model = facts["model"]
        model_class(model["class"])
        return {
            "model": _class_name(model),
            "params": {name: _plain(value) for name, value in model["params"].items()},
            "provenance": _plain(model["state"].get("provenance_")),
            "recipe": _plain(model["state"].get("recipe_")),
            "arrays": arrays,
            "bytes": n_bytes,
            "format": facts["format"],
            "shoal": facts["shoal"],
        }
    except _BROKEN as error:
        raise BadModelFile(f"{path} has a damaged header. Restore it from a copy, or fit and save again.") from error


def model_class(name: str) -> type[Estimator]:
    """The model of shoal that a file calls by this name."""
    cls = storable_class(name)
    if cls is None or not issubclass(cls, Estimator):
        raise Malformed(f"a model called {name!r}")
    return cls


def _require_loadable(model: Estimator) -> None:
    name = type(model).__name__
    try:
        known = model_class(storable_name(type(model))) is type(model)
    except (Malformed, ImportError):
        known = False
    if not known:
        raise BadInput(
            f"cannot save a {name}: shoal.load would not find its class. Decorate it with shoal.base.storable."
        )


def _from_dataset(dataset: Any) -> dict[str, Any]:
    if dataset is None:
        return {}
    learned = {"vocabulary_": dataset.vocabulary, "recipe_": dataset.recipe}
    return {name: value for name, value in learned.items() if value is not None} | {
        "provenance_": {
            "data": {"rows": int(dataset.X.shape[0]), "features": int(dataset.X.shape[1]), **dataset.summary}
        }
    }


def _facts(header: container.Header, path: str | os.PathLike[str]) -> dict[str, Any]:
    """The JSON inside the header, if this version can read it."""
    try:
        facts = json.loads(header.text)
        version, writer = facts["format"], facts["shoal"]
        if type(version) is not int or type(writer) is not str or not isinstance(facts.get("model", {}), dict):
            raise TypeError
    except (ValueError, TypeError, KeyError, RecursionError):
        raise BadModelFile(f"{path} has a damaged header. Restore it from a copy, or fit and save again.") from None
    if version != FORMAT:
        advice = "Upgrade shoal." if version > FORMAT else "Fit and save again, or install the shoal that wrote it."
        raise BadModelFile(
            f"{path} was written by shoal {writer} in file format {version}; this shoal ({shoal.__version__}) reads "
            f"format {FORMAT}. {advice}"
        )
    return facts  # type: ignore[no-any-return]


def _build_model(decoder: Decoder, value: dict[str, Any]) -> Estimator:
    cls = model_class(value["class"])
    model = cls(**{name: decoder.decode(item) for name, item in value["params"].items()})
    for name in value["state"]:
        if not (name.endswith("_") and not name.startswith("_")) and name not in cls._private_state:
            raise Malformed(f"an attribute called {name!r}")
    model.restore_state({name: decoder.decode(item) for name, item in value["state"].items()})
    check_model(model)
    return model


def _plain(value: Any) -> Any:
    """Encoded JSON in a form for people: arrays are only named."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value["$"]
    if kind == "dict":
        return {str(_plain(key)): _plain(item) for key, item in value["items"]}
    if kind in ("tuple", "set", "frozenset"):
        return [_plain(item) for item in value["items"]]
    if kind in ("float", "int", "complex"):
        return Decoder({}, _build_model).decode(value)
    if kind in ("part", "model"):
        inside = value["fields"] if kind == "part" else value["params"]
        return {"class": _class_name(value)} | {name: _plain(item) for name, item in inside.items()}
    return f"<{kind}>"


def _class_name(value: dict[str, Any]) -> str:
    return str(value["class"]).rpartition(".")[2]


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
