"""The dashboard: live pages about campaigns in a browser."""
