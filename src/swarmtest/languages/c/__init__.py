"""Read C and C++: tokens, functions and control flow by hand, syntax trees by tree-sitter."""
