"""Tables of what people ask the desk."""
