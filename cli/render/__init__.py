"""Records to text: terminal tables, Markdown, JSON, SARIF, DOT."""
