def lambda_handler(event, context):
    [span] = event["evaluationInput"]["sessionSpans"]
    wanted = event["evaluationReferenceInputs"][0]["expectedResponse"]["text"]
    right = span["attributes"]["gen_ai.output"] == wanted
    return {"label": "right" if right else "wrong", "value": float(right), "explanation": "compared as text"}
