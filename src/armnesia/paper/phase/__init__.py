"""Phase diagrams: which method is best where."""
