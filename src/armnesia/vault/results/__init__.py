"""What the operations of a vault return: frozen values, each with its JSON form in `to_dict()`."""
