def perform_eval(run, example):
    right = run["outputs"]["answer"] == example["outputs"]["answer"]
    return {"key": "correct", "score": int(right), "comment": "compared as text"}
