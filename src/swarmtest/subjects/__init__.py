"""What is tested: machines now; commands, grammars and other people's generators later."""
