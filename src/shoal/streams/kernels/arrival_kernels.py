# mypy: ignore-errors
"""How likely the times of a stream are, one after another, each given those before it."""

import math

from shoal.jit import kernel


@kernel
def discounted_arrivals(times, rates, shape, expected_gap, sums, exposures, clock, keep, log_probs):
    """Take in messages in order of time, for each of several rates of forgetting.

    Of a rate of arrivals, each rate of forgetting r knows a Gamma: shape + sum of exp(-r age) over the messages, and
    shape * expected_gap + the integral of exp(-r age) over the time that was watched. The next gap is then Lomax.
    """
    for t in times:
        gap = max(0.0, t - clock[0])
        for x in range(rates.size):
            a, b = shape + sums[x], shape * expected_gap + exposures[x]
            log_prob = math.log(a) + a * math.log(b) - (a + 1.0) * math.log(b + gap)
            log_probs[x] = keep * log_probs[x] + log_prob
            faded = math.exp(-rates[x] * gap)
            sums[x] = sums[x] * faded + 1.0
            exposures[x] = exposures[x] * faded + (gap if rates[x] == 0.0 else (1.0 - faded) / rates[x])
        clock[0] = t


@kernel
def kernel_alone(times, rate, concentration, shape, expected_gap):
    """log P(times) where messages come at a multiple of alpha + T(t), the weight of all, and the multiple is unknown.

    That is the Hawkes process whose messages choose their clusters as the mixture says.
    """
    total, weight, compensator, last = 0.0, 0.0, shape * expected_gap * concentration, times[0]
    n = shape
    for t in times:
        gap = t - last
        faded = math.exp(-rate * gap)
        step = concentration * gap + (weight * gap if rate == 0.0 else weight * (1.0 - faded) / rate)
        weight *= faded
        total += math.log(n) + n * math.log(compensator) - (n + 1.0) * math.log(compensator + step)
        total += math.log(concentration + weight)
        compensator += step
        weight += 1.0
        n += 1.0
        last = t
    return total
