def evaluate(inputs, outputs, trace):
    words = len(str(outputs if outputs is not None else "").split())
    most = float(inputs.get("max_words", 50))
    return {"score": 1 if words <= most else most / words, "words": words, "reason": f"{words} words, at most {most:g}"}
