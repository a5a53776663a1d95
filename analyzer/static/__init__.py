"""From the source of a serving checkout to the path map of one launch configuration."""
