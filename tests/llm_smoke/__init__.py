"""The wire, proven against a real model: a tiny one behind llama.cpp's own OpenAI-compatible server."""
