import unicodedata


def evaluate(inputs, outputs, trace):
    expected = normalise(inputs.get("correct_answer"))
    if not expected:
        raise ValueError("the row has no correct_answer to compare with")
    return normalise(outputs) == expected


def normalise(value):
    text = "" if value is None else str(value)
    # NFKC also turns full-width letters and no-break spaces into the ordinary ones.
    return " ".join(unicodedata.normalize("NFKC", text).lower().split())
