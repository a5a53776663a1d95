"""Device-graph primitives of a checkout: where they are, which objects they belong to, and what can be proven about them."""
