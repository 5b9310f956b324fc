"""Lists client packages for models and platforms. Code may import them without a pin (`evaluator_runner/later.py`)."""

RECORDS = {"langfuse": ("Evaluation",)}
"""Classes that only store their keyword arguments; code can create objects of them although no package is pinned."""

PACKAGES = {  # the distribution that provides each module
    "anthropic": "anthropic",
    "autogen": "ag2",
    "boto3": "boto3",
    "cohere": "cohere",
    "comet_ml": "comet-ml",
    "dotenv": "python-dotenv",
    "groq": "groq",
    "instructor": "instructor",
    "langchain": "langchain",
    "langchain_anthropic": "langchain-anthropic",
    "langchain_community": "langchain-community",
    "langchain_core": "langchain-core",
    "langchain_google_genai": "langchain-google-genai",
    "langchain_openai": "langchain-openai",
    "langfuse": "langfuse",
    "langgraph": "langgraph",
    "litellm": "litellm",
    "mistralai": "mistralai",
    "ollama": "ollama",
    "openai": "openai",
    "openevals": "openevals",
    "pydantic_ai": "pydantic-ai-slim",
    "together": "together",
    "vertexai": "google-cloud-aiplatform",
    "wandb": "wandb",
}

CLIENTS = {"anthropic": ("Anthropic", "AsyncAnthropic"), "openai": ("OpenAI", "AsyncOpenAI")}
"""Classes of clients, by module, that find a granted model by environment variables, such as `OPENAI_BASE_URL`."""
