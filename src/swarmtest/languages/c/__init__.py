"""Read C and C++ with tree-sitter: functions, their control flow, and syntax trees."""
