"""`python -m sgl_graph.cli`: the same program without the console script."""

from sgl_graph.cli.app import main

main()
