def correct(completions, answer, **kwargs):
    return [1.0 if said == right else 0.5 if right in said else 0.0 for said, right in zip(completions, answer)]
