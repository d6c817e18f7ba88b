"""The providers that ask a language model: Anthropic, Google, OpenAI and local servers."""
