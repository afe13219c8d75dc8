"""Scaffolds: agents with their prompts, tools and context, ours and mini-swe-agent."""
