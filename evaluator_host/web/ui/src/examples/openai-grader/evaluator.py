def grade(sample, item) -> float:
    return 1.0 if sample["output_text"].strip() == item["reference"] else 0.0
