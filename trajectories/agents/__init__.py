"""Agents at work on one stage: scaffolds, tools, what they run in a shell, who watches and guides them."""
