def evaluate(inputs, outputs, trace):
    from evaluator_runner.failures import Failure
    raise Failure("sandbox_lost", "the host is to blame")
