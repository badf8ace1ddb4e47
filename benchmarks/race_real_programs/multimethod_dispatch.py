"""multimethod, issue 73: "dictionary changed size during iteration" in threads (1.9.1)."""

import threading

from multimethod import multimethod


class Half(float):
    pass


def of_int(value: int):
    return "int"


def of_float(value: float):
    return "float"


def program():
    kind = multimethod(of_int)
    kind.register(of_float)
    threads = [threading.Thread(target=kind, args=(value,)) for value in (True, Half())]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
