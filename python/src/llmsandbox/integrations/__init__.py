"""Tools of agent frameworks that run a model's code: a module for each, which imports the framework.

The modules `openai` and `anthropic` import neither SDK: they make what the wire formats have.
"""
