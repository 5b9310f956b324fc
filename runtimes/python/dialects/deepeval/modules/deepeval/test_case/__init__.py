"""Test cases, which metrics get as their argument."""

from deepeval.test_case.cases import ConversationalTestCase as ConversationalTestCase
from deepeval.test_case.cases import LLMTestCase as LLMTestCase
from deepeval.test_case.cases import LLMTestCaseParams as LLMTestCaseParams
from deepeval.test_case.cases import SingleTurnParams as SingleTurnParams
from deepeval.test_case.cases import ToolCall as ToolCall
from deepeval.test_case.cases import Turn as Turn
