"""Make anything that consists of parts smaller while a criterion holds."""
