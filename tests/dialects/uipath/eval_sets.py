"""Eval sets for tests, in both of UiPath's formats."""

from typing import Any, Final

DOCUMENTED: Final[dict[str, Any]] = {
    "version": "1.0",
    "id": "my-eval-set",
    "evaluatorRefs": ["MyCustomEvaluator"],
    "evaluationItems": [
        {
            "id": "test-1",
            "agentInput": {"query": "Process data"},
            "evaluations": [
                {
                    "evaluatorId": "MyCustomEvaluator",
                    "evaluationCriteria": {"expectedValues": ["value1", "value2"]},
                }
            ],
        }
    ],
}
REAL: Final[dict[str, Any]] = {
    "version": "1.0",
    "id": "pattern-set",
    "name": "Pattern Set",
    "evaluatorRefs": ["PatternComparisonEvaluator", "OtherEvaluator"],
    "evaluatorConfigs": [{"ref": "PatternComparisonEvaluator", "weight": 2.0}, "OtherEvaluator"],
    "evaluations": [
        {
            "id": "test-1",
            "name": "Test 1",
            "inputs": {"query": "hello"},
            "expectedAgentBehavior": "It greets.",
            "mockingStrategy": None,
            "evaluationCriterias": {
                "PatternComparisonEvaluator": {"expectedOutput": ["alpha"]},
                "OtherEvaluator": None,
            },
        },
        {
            "id": "test-2",
            "name": "Test 2",
            "inputs": {},
            "evaluationCriterias": {"PatternComparisonEvaluator": {}},
        },
    ],
}
