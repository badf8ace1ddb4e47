"""Programs of asyncio for `race.py`."""
