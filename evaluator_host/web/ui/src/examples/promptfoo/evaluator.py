def get_assert(output, context):
    right = output == context["vars"]["expected"]
    return {"pass": right, "score": 1.0 if right else 0.0, "reason": "compared as text"}
