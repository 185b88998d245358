"""``fit`` of 6,359 headlines ended by Ctrl-C at ten moments: what the model is then, beside the stream's.

python benchmarks/streams_interrupts.py [MOMENTS]
"""

from __future__ import annotations

import os
import signal
import sys
import time
import warnings

import numpy as np

from common import record
from shoal.errors import InterruptedWarning
from shoal.streams import TimeSensitiveMixture
from streams_stories import load, quality


def main(n_moments: int) -> None:
    X, truth, times = load("news_jitter")
    TimeSensitiveMixture(random_state=0).fit(X[:600], times=times[:600])  # compiles
    stream = TimeSensitiveMixture(random_state=0).partial_fit(X, times=times)
    best = quality(stream.all_labels_, truth)
    began = time.process_time()
    TimeSensitiveMixture(random_state=0).fit(X, times=times)
    whole = time.process_time() - began
    signal.signal(signal.SIGPROF, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    for share in np.linspace(0.02, 0.95, n_moments):
        model = TimeSensitiveMixture(random_state=0)
        signal.setitimer(signal.ITIMER_PROF, share * whole)  # of CPU time
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, times=times)
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        found = quality(model.labels_, truth)
        usable = bool((model.predict(X[:50], times=times[:50]) >= -1).all())
        model.partial_fit(X[:20], times=np.full(20, times[-1]))
        record("streams", workload="headlines, fit ended by Ctrl-C", model="TimeSensitiveMixture", quality=found["b3"],
               b3_of_stream=best["b3"], nmi=found["nmi"], nmi_of_stream=best["nmi"], after_share=float(share),
               interrupted=any(issubclass(each.category, InterruptedWarning) for each in caught),
               converged=model.converged_, usable=usable)  # fmt: skip


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
