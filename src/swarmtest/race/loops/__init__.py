"""Event loops of asyncio under control: which task runs next, and when timers fire."""
