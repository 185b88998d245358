"""How clusters are found: Gibbs sampling, the one-pass stream, and learning of the parameters."""
