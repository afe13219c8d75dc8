"""Stages and chains as Harbor's task folders."""
