"""Small models, items and services that the tests share."""

from __future__ import annotations

from contextlib import contextmanager

import httpx
import numpy as np

from shoal import BernoulliMixture, SphericalKMeans
from shoal.service import Service, create_app, serving
from shoal.streams import TimeSensitiveMixture

KINDS = ("bernoulli", "kmeans", "stream")
N_GROUPS = 4


def new_model(kind):
    if kind == "bernoulli":
        return BernoulliMixture(N_GROUPS, random_state=0)
    if kind == "kmeans":
        return SphericalKMeans(N_GROUPS, random_state=0, n_threads=1)
    return TimeSensitiveMixture(random_state=0)


def items(n, start=0, seed=0):
    """Items of four groups of words; each also has a word of its own, by which it can be counted."""
    rng = np.random.default_rng(seed + start)
    made = []
    for at in range(start, start + n):
        group = at % N_GROUPS
        words = [f"g{group}w{one}" for one in rng.choice(6, 4, replace=False)]
        made.append({"id": f"item-{at}", "features": [*words, "shared", f"own-{at}"], "time": 1.7e9 + at})
    return made


@contextmanager
def running(folder, model=None, **options):
    """A started service and an HTTP client for it; ready when this returns."""
    service = Service(folder, model, **{"reserve_mb": 0.001, "publish_seconds": 0.05, **options})
    with serving(create_app(service)) as url, httpx.Client(base_url=url, timeout=120) as client:
        wait_until(lambda: service.ready)
        client.service, client.url = service, url
        yield client


def wait_until(condition, seconds=120):
    import time

    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def learned(client, some, **query):
    """Learn items and wait until readers see them."""
    answer = client.post("/learn", json={"items": some}, params={"wait": 60, **query})
    assert answer.status_code == 202, answer.text
    assert answer.json()["learned"]
    return answer.json()
