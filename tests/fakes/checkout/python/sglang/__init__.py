"""A serving checkout reduced to its outside: arguments, HTTP, processes. Behaviour by FAKE_* variables."""
