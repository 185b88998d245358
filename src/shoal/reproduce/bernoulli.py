"""Bayesian online clustering of binary vectors (adCenter): pairs, moment matching, ads, and keywords of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import Any

import numpy as np
from scipy.stats import beta as beta_law

from shoal.plotting import BLUE, GREY, figure
from shoal.reproduce.result import Paper, Picture, Size, Table

PAIRS_IN_PAPER = {"ADF": (99.5, 1.66), "EM": (97.4, 1.67), "k-means": (94.3, 2.28), "agglomerative": (93.0, 2.28)}
ADS_IN_PAPER = {  # hours, negative log likelihood of test ads, advertiser entropy
    "ADF": (1.0, 17.97, 1.18),
    "ADF, clutter left out": (None, None, 0.96),
    "EM": (40.0, 12.98, 2.61),
    "k-means": (3.0, None, None),
    "agglomerative": (3.5, None, None),
}
COLORS = {"ADF": BLUE, "EM": "#c8553d", "k-means": "#3a9a5b", "agglomerative": GREY}


def reproduce(size: Size) -> Paper:
    """All of the paper's tables and figures."""
    paper = Paper(
        "bernoulli",
        "Bayesian online clustering of binary vectors",
        "Synthetic rows follow the paper's recipe (10,000 x 100, 10 clusters). The paper's 207,000 ads are not public: "
        "ads here are generated, keyword sets with a Zipf background and advertisers who mostly stay with one "
        "subject, so likelihoods and entropies differ in level and only the comparison carries over. "
        "Keywords of a cluster are from Debian's packages and their tags, which ship with shoal.",
    )
    _pairs(paper, size)
    paper.pictures.append(moment_matching())
    _ads(paper, size)
    _keywords(paper)
    return paper


# --- the synthetic test -----------------------------------------------------------------------------------------------


def _pairs(paper: Paper, size: Size) -> None:
    from shoal.datasets import make_bernoulli_profiles
    from shoal.metrics import pair_roc

    thresholds = np.linspace(0.1, 0.9, 17)
    curves: dict[str, list[np.ndarray]] = {}
    n_seeds = size.of(2, 20)
    for seed in range(n_seeds):
        data = make_bernoulli_profiles(random_state=seed)
        for name, rows, shares in _memberships(data.X, seed, size):
            roc = pair_roc(np.asarray(data.labels)[:rows], shares, thresholds=thresholds)
            curves.setdefault(name, []).append(np.stack([roc.tpr, roc.fpr]))
    half = int(np.argmin(np.abs(thresholds - 0.5)))
    lines: list[list[Any]] = []
    for name, runs in curves.items():
        tpr, fpr = 100 * np.mean([run[:, half] for run in runs], axis=0)
        lines.append([name, tpr, PAIRS_IN_PAPER[name][0], fpr, PAIRS_IN_PAPER[name][1]])
    paper.tables.append(
        Table(
            "Table 1. Pairs of rows called the same cluster or not, p(same) > 0.5",
            ["method", "true positives, %", "true positives, % (paper)", "false positives, %",
             "false positives, % (paper)"],
            lines,
            f"Mean of {n_seeds} sets. Agglomerative clustering sees {size.of(2000, 4000):,} rows: its memory grows "
            "with their square.",
        )
    )  # fmt: skip
    drawn, axes = figure(6.4, 4.2)
    for name, runs in curves.items():
        mean = 100 * np.mean(runs, axis=0)
        axes.plot(mean[1], mean[0], "o-", color=COLORS[name], markersize=4, label=name)
        axes.plot(*PAIRS_IN_PAPER[name][::-1], "x", color=COLORS[name], markersize=8)
    axes.plot([], [], "x", color="black", label="paper, p(same) > 0.5")
    axes.set(xlabel="false positive rate of pairs, %", ylabel="true positive rate of pairs, %")
    axes.legend(frameon=False, fontsize=9)
    caption = "The threshold on p(same) goes from 0.1 to 0.9. Hard assignments have one point each."
    paper.pictures.append(Picture("Figure 4. Pairs: true against false positives", caption, drawn))


def _memberships(X: Any, seed: int, size: Size) -> Iterator[tuple[str, int, np.ndarray]]:
    """Name, how many rows, and the membership of each in each cluster."""
    from sklearn.cluster import AgglomerativeClustering, KMeans

    from shoal.bernoulli import BernoulliMixture

    yield "ADF", X.shape[0], BernoulliMixture(10, clutter=False, random_state=seed).fit(X).predict_proba(X)
    em = BernoulliMixture(10, inference="em", clutter=False, random_state=seed).fit(X)
    yield "EM", X.shape[0], em.predict_proba(X)
    dense = X.toarray()
    yield "k-means", X.shape[0], _one_hot(KMeans(10, n_init=1, random_state=seed).fit_predict(dense))
    few = size.of(2000, 4000)
    yield "agglomerative", few, _one_hot(AgglomerativeClustering(10).fit_predict(dense[:few]))


def _one_hot(labels: np.ndarray) -> np.ndarray:
    return np.eye(labels.max() + 1)[labels]


# --- moment matching --------------------------------------------------------------------------------------------------


def moment_matching(alpha: float = 1.0, total: float = 10.0) -> Picture:
    """The exact marginal and its projection; how sure the projection is, by responsibility."""
    from shoal.bernoulli.moment_matching_kernels import match_moments

    drawn, axes = figure(9.6, 3.4)
    drawn.clf()
    left, right = drawn.subplots(1, 2)
    t = np.linspace(0.001, 0.8, 300)
    for share, color in ((0.1, GREY), (0.4, BLUE), (0.9, "#c8553d")):
        exact = share * beta_law.pdf(t, alpha + 1, total - alpha) + (1 - share) * beta_law.pdf(t, alpha, total - alpha)
        new_alpha, new_total = match_moments(alpha, total, share)
        left.plot(t, exact, color=color, label=f"r = {share}: mixture")
        left.plot(t, beta_law.pdf(t, new_alpha, new_total - new_alpha), "--", color=color, label="one Beta")
    left.set(xlabel="probability of the keyword", ylabel="density")
    left.legend(frameon=False, fontsize=8, ncols=2)
    shares = np.linspace(0.001, 0.999, 200)
    right.plot(shares, [match_moments(alpha, total, r)[1] for r in shares], color=BLUE, label="has the keyword")
    flipped = [match_moments(total - alpha, total, r)[1] for r in shares]
    right.plot(shares, flipped, color="#c8553d", label="has it not")
    right.axhline(total, color=GREY, linestyle=":", label="before the ad")
    right.set(xlabel="responsibility r", ylabel="alpha + beta after the ad")
    right.legend(frameon=False, fontsize=9)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    caption = (
        "From Beta(1, 9). Left: the exact marginal, a mixture of two Betas, and the one Beta with its mean and "
        "variance. Right: an ad that may or may not belong to the cluster makes it less sure, most near r = 0.4."
    )
    return Picture("Figure 3. Moment matching", caption, drawn)


# --- ads --------------------------------------------------------------------------------------------------------------


def _ads(paper: Paper, size: Size) -> None:
    from shoal.datasets import make_zipf_ads

    n_ads, n_keywords, k = (20_000, 1_000, 30) if size.quick else (207_000, 2_000, 100)
    ads = make_zipf_ads(n_ads, n_features=n_keywords, n_clusters=k, clutter_share=0.05, random_state=0)
    columns = ["method", "seconds", "hours (paper)", "-log likelihood", "-log likelihood (paper)", "owner entropy",
               "owner entropy (paper)", "information owner-cluster", "clusters in effect"]  # fmt: skip
    note = (
        "Owner entropy is 0 for a single cluster: compare it with the information between owner and cluster "
        "(nats; more is better) and the effective number of clusters. Test ads are a fifth of all. "
        f"Agglomerative clustering sees {size.of(2000, 8000):,} ads."
    )
    title = "Tables 2 and 3. Ads: time, test likelihood, and how advertisers are spread over clusters"
    name = f"{title} ({n_ads:,} generated ads x {n_keywords:,} keywords, {k} clusters)"
    paper.tables.append(Table(name, columns, _ad_rows(ads.X, np.asarray(ads.owners), k, size), note))
    real = size.real("ads")
    if real is not None:
        import shoal

        dataset = shoal.read(str(real))
        owners = np.asarray(dataset.owners if dataset.owners is not None else np.arange(len(dataset)))
        rows = _ad_rows(dataset.X, owners, min(100, len(dataset) // 20), size)
        paper.tables.append(Table(f"The same on {real.name}", columns, rows, note))


def _ad_rows(X: Any, owners: np.ndarray, k: int, size: Size) -> list[list[Any]]:
    from sklearn.cluster import AgglomerativeClustering

    from shoal.bernoulli import BernoulliMixture
    from shoal.kmeans import SphericalKMeans
    from shoal.metrics import owner_entropy

    order = np.random.default_rng(0).permutation(X.shape[0])
    test, train = np.sort(order[: len(order) // 5]), np.sort(order[len(order) // 5 :])
    rows = []
    for name, model in {
        "ADF": BernoulliMixture(k, random_state=0),
        "EM": BernoulliMixture(k, inference="em", clutter=False, random_state=0),
        "k-means": SphericalKMeans(k, random_state=0),
    }.items():
        model.fit(X[train[:500]])  # compiles
        began = perf_counter()
        model.fit(X[train])
        seconds = perf_counter() - began
        loss = -model.score(X[test]) if name != "k-means" else None
        labels = model.predict(X)
        rows.append(_ad_row(name, seconds, loss, owners, labels))
        if name == "ADF":
            entropy = owner_entropy(owners, labels, clutter=-1)
            left_out = "ADF, clutter left out"
            rows.append([left_out, None, None, None, None, entropy, ADS_IN_PAPER[left_out][2], None, None])
    few = train[: size.of(2000, 8000)]
    began = perf_counter()
    labels = AgglomerativeClustering(k).fit_predict(X[few].toarray())
    rows.append(_ad_row("agglomerative", perf_counter() - began, None, owners[few], labels))
    return rows


def _ad_row(name: str, seconds: float, loss: float | None, owners: np.ndarray, labels: np.ndarray) -> list[Any]:
    from shoal.metrics import effective_number_of_clusters, owner_entropy, owner_information

    hours, their_loss, their_entropy = ADS_IN_PAPER[name]
    return [name, seconds, hours, loss, their_loss, owner_entropy(owners, labels), their_entropy,
            owner_information(owners, labels), effective_number_of_clusters(labels)]  # fmt: skip


# --- what stands at the top of a cluster ------------------------------------------------------------------------------


def _keywords(paper: Paper, k: int = 40) -> None:
    from shoal.bernoulli import BernoulliMixture
    from shoal.datasets import load_debian_packages

    packages = load_debian_packages()
    for seed in range(1, 6):
        model = BernoulliMixture(k, random_state=seed).fit(packages)
        found = spurious(model)
        if found is not None:
            paper.tables.append(_orders(model, packages.vocabulary, *found))
            return
    title = "Table 4. Keywords of a cluster, by mean and by alpha"
    note = "In no cluster of five fits does a tag stand among the first by mean and not by alpha."
    paper.tables.append(Table(title, ["fits", "clusters with a spurious tag"], [[5, 0]], note))


def _orders(model: Any, names: Any, cluster: int, feature: int) -> Table:
    """The first five of a cluster in both orders."""
    beliefs, lines = beliefs_of(model, cluster), []
    for place in range(5):
        row: list[Any] = [place + 1]
        for by in ("mean", "alpha"):
            column = int(model.top_features(cluster, 5, by=by).features[place])
            alpha, beta = beliefs[column]
            row += [str(names[column]), f"{alpha:.0f} / {beta:.0f}", f"{alpha / (alpha + beta):.2f}"]
        lines.append(row)
    columns = ["rank", "by mean", "alpha / beta", "mean", "by alpha", "alpha / beta ", "mean "]
    note = (
        f"{names[feature]!s} stands high by its mean though few packages speak for it; by alpha, the effective number "
        "of packages, it does not. In the paper 'pest control' (44 / 343) stands above 'nissan altima' (84 / 1039)."
    )
    return Table("Table 4. Keywords of a cluster, by mean and by alpha", columns, lines, note)


def beliefs_of(model: Any, cluster: int) -> dict[int, tuple[float, float]]:
    """alpha and beta of each feature that a cluster has a Beta of its own for."""
    profiles = model.profiles_
    slots = np.flatnonzero(profiles.cluster[: profiles.n_entries] == model.roster_.row_of(cluster) + profiles.n_clutter)
    alphas, betas = profiles.alphas()[slots], profiles.betas()[slots]
    return {
        int(feature): (float(alpha), float(beta))
        for feature, alpha, beta in zip(profiles.feature[slots], alphas, betas, strict=True)
    }


def spurious(model: Any, n: int = 5) -> tuple[int, int] | None:
    """A cluster and the feature nearest to its top by mean that is not among the first ``n`` by alpha."""
    found = []
    for cluster in model.roster_.ids:
        by_mean = model.top_features(int(cluster), n, by="mean").features
        by_alpha = model.top_features(int(cluster), n, by="alpha").features
        beliefs = beliefs_of(model, int(cluster))
        for place, feature in enumerate(by_mean[: n - 1]):
            below = [beliefs[int(other)][0] for other in by_mean[place + 1 :]]
            if feature not in by_alpha:
                found.append((-place, max(below) / beliefs[int(feature)][0], int(cluster), int(feature)))
    return max(found)[2:] if found else None
