def exact(outputs, inputs, ground_truth):
    return {"score": float(outputs == ground_truth), "explanation": "compared as text"}
