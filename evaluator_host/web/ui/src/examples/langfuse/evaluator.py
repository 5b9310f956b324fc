def evaluate(ctx):
    right = ctx.observation.output == ctx.experiment.item_expected_output
    return EvaluationResult(scores=[Score(name="exact", value=right, data_type="BOOLEAN", comment="compared as text")])
