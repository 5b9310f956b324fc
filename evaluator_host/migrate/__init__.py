"""Rewrites legacy evaluators to the new signature, and proves on rows, in sandboxes, that they score the same.

Legacy means `evaluate(app_params, inputs, output, correct_answer)`: Agenta's older signature, called contract
`evaluate-v1` here.
"""
