def evaluate(output, reference):
    right = output == reference
    return {"score": float(right), "label": "right" if right else "wrong", "explanation": "compared as text"}
