"""One file to facts: what its source says, in a compact form that is cheap to store; knows nothing of other files."""
