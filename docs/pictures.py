def make_missing(folder):
    folder.mkdir(exist_ok=True)
