def handler(input, output, expected, metadata):
    if expected is None:
        return None
    return {"name": "exact", "score": 1.0 if output == expected else 0.0, "metadata": {"wanted": expected}}
