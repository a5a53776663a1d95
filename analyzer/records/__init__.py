"""The vocabulary: records that travel between the parts and into JSON."""
