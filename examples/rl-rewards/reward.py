import re


def evaluate(inputs, outputs, trace):
    tests = [compile(test, "test", "exec") for test in inputs["tests"]]  # if a test is not valid Python, the row fails
    fenced = re.search(r"```(?:python)?\n(.*?)```", outputs, re.DOTALL)
    namespace = {}
    try:
        exec(fenced[1] if fenced else outputs, namespace)
        for test in tests:
            exec(test, namespace)
    except BaseException as error:  # noqa: BLE001 - an answer may raise anything
        return {"score": 0.0, "reason": type(error).__name__}
    return 1.0
