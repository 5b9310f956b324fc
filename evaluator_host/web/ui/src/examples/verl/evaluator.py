import re


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    found = re.findall(r"\\boxed\{(.*?)\}", solution_str)
    right = bool(found) and found[-1] == ground_truth
    return {"score": float(right), "answer": found[-1] if found else None}
