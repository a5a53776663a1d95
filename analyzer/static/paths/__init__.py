"""Capture paths of one configuration: what reaches which primitives, under which labels, with which traffic and gaps."""
