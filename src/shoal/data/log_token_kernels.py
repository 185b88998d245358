"""Log lines masked, and their words written with their places."""

# mypy: ignore-errors
from shoal.data.token_kernels import SPACE, is_blank
from shoal.jit import kernel

LONGEST = 48  # bytes of a word that are kept
LINE_SHARE = 4  # the masked line counts for a quarter of its words
SLASH, EQUALS, COLON, ZERO, NINE = 47, 61, 58, 48, 57


@kernel
def mask_lines(text, offsets, masked, starts, stops, ends):
    """Words of each row with one space between, where what is variable is <*>; ends[row] counts words so far."""
    n_words, out = 0, 0
    for row in range(ends.size):
        at, stop = offsets[row], offsets[row + 1]
        while at < stop:
            while at < stop and is_blank(text[at]):
                at += 1
            begin = at
            while at < stop and not is_blank(text[at]):
                at += 1
            if at > begin:
                starts[n_words] = out
                out = put_word(text, begin, at, masked, out)
                stops[n_words] = out
                n_words += 1
                masked[out] = SPACE
                out += 1
        ends[row] = n_words
    return n_words


@kernel
def put_word(text, begin, stop, masked, out):
    """A word as it is, or <*> if it has a digit or a slash; the key of key=<*> stays if it has neither."""
    equals, variable = -1, -1
    for at in range(begin, stop):
        byte = text[at]
        if byte == EQUALS and equals < 0:
            equals = at
        if ZERO <= byte <= NINE or (byte == SLASH and stop - begin > 1):
            variable = at
            break
    if variable < 0:
        last = clipped(text, begin, stop)
        masked[out : out + last - begin] = text[begin:last]
        return out + last - begin
    if begin < equals < variable:
        last = clipped(text, begin, equals)
        masked[out : out + last - begin] = text[begin:last]
        out += last - begin
        masked[out] = EQUALS
        out += 1
    masked[out], masked[out + 1], masked[out + 2] = 60, 42, 62  # <*>
    return out + 3


@kernel
def clipped(text, begin, stop):
    """Where a word ends that is not longer than LONGEST bytes, at the end of a letter."""
    if stop - begin <= LONGEST:
        return stop
    stop = begin + LONGEST
    while stop > begin and text[stop] & 0xC0 == 0x80:
        stop -= 1
    return stop


@kernel
def n_digits(number):
    n = 1
    while number >= 10:
        number //= 10
        n += 1
    return n


@kernel
def put_number(number, names, out):
    n = n_digits(number)
    for place in range(n):
        names[out + n - 1 - place] = ZERO + number % 10
        number //= 10
    return out + n


@kernel
def put_name(masked, starts, stops, first, n, place, names, out):
    """'<first word> <second word> <place>/<n>: <word>', place counted from 0."""
    last = stops[first + 1] if n > 1 else stops[first]
    names[out : out + last - starts[first]] = masked[starts[first] : last]
    out += last - starts[first]
    names[out] = SPACE
    out = put_number(place + 1, names, out + 1)
    names[out] = SLASH
    out = put_number(n, names, out + 1)
    names[out], names[out + 1] = COLON, SPACE
    out += 2
    start, stop = starts[first + place], stops[first + place]
    names[out : out + stop - start] = masked[start:stop]
    return out + stop - start


@kernel
def place_words(masked, starts, stops, ends, names, out_starts, out_stops, row_ends):
    """Each row's words with their places, then the masked line, once for every four words; with no names, the sizes.

    Returns the bytes and the features written.
    """
    out, n_features, first = 0, 0, 0
    for row in range(ends.size):
        n = ends[row] - first
        if n == 0:
            row_ends[row] = n_features
            continue
        begin = out
        stop = stops[first + n - 1]
        repeats = max(1, n // LINE_SHARE)
        if names.size == 0:
            context = (stops[first + 1] if n > 1 else stops[first]) - starts[first]
            for place in range(n):
                out += context + n_digits(place + 1) + n_digits(n) + 4 + stops[first + place] - starts[first + place]
            out += stop - starts[first]
        else:
            for place in range(n):
                out_starts[n_features + place] = out
                out = put_name(masked, starts, stops, first, n, place, names, out)
                out_stops[n_features + place] = out
            begin = out
            names[out : out + stop - starts[first]] = masked[starts[first] : stop]
            out += stop - starts[first]
            for copy in range(repeats):
                out_starts[n_features + n + copy], out_stops[n_features + n + copy] = begin, out
        n_features += n + repeats
        first = ends[row]
        row_ends[row] = n_features
    return out, n_features
