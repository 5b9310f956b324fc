from patronus import EvaluationResult, evaluator


@evaluator()
def exact(row, **kwargs):
    right = row.task_output == row.gold_answer
    return EvaluationResult(score=float(right), pass_=right)
