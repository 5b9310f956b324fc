"""Types of conversations: a list of messages `{"role", "content"}`."""

ConversationDict = dict
Conversation = list
