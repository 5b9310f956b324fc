def evaluate(instance: dict) -> float:
    return 1.0 if instance["response"]["text"] == instance["reference"]["text"] else 0.0
