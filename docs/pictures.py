"""The pictures of the guides, drawn by the build with the code of the pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def stories() -> Any:
    """The stream of the guide: when each of the largest stories had its messages."""
    import shoal
    from shoal.streams import plots

    chat = shoal.datasets.make_threads(
        2000,
        n_features=5000,
        length=8,
        arrival_rate=1.0,
        decay=0.02,
        concentration=2.0,
        prior=0.002,
        zipf=1.05,
        random_state=0,
    )
    model = shoal.TimeSensitiveMixture(random_state=0).partial_fit(chat)
    return plots.time_versus_cluster(model, n_clusters=16)


def moments() -> Any:
    """What one ad does to a cluster's belief."""
    from shoal.reproduce.bernoulli import moment_matching

    return moment_matching().drawn


def sizes() -> Any:
    """How large the clusters of Debian's packages are."""
    import shoal
    from shoal.report.plots import size_plot

    packages = shoal.datasets.load_debian_packages()
    model = shoal.BernoulliMixture(60, random_state=0).fit(packages)
    return size_plot(shoal.cluster_cards(model, packages))


PICTURES = {"stories.png": stories, "moments.png": moments, "sizes.png": sizes}


def make_missing(folder: Path) -> None:
    """Draw what is not there yet; delete the folder to have all drawn again."""
    folder.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        if not (folder / name).exists():
            draw().savefig(folder / name, dpi=130)
