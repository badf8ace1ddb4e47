"""Weaving: put probes into a module's syntax tree, and interpret what they write.

`weaver` decides where probes go, `snippets` makes their syntax, `implications` says which targets
follow from a probe, `arcs` names branches; `blocks` and `paths` are for path coverage.
"""
