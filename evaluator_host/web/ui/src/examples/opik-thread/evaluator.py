from opik.evaluation.metrics import score_result
from opik.evaluation.metrics.conversation import conversation_thread_metric, types


class Answered(conversation_thread_metric.ConversationThreadMetric):
    def score(self, conversation: types.Conversation, **ignored) -> score_result.ScoreResult:
        asked = sum(one["role"] == "user" for one in conversation)
        said = sum(one["role"] == "assistant" for one in conversation)
        return score_result.ScoreResult(name="answered", value=min(1.0, said / asked))
