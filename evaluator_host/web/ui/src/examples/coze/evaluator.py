def exec_evaluation(turn):
    said = turn["evaluate_target_output_fields"]["actual_output"]["text"]
    wanted = turn["evaluate_dataset_fields"]["reference_output"]["text"]
    return EvalOutput(score=1.0 if said == wanted else 0.0, reason="compared as text")
