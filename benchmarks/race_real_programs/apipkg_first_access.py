"""apipkg, pull request 25: "Fix race conditions for attribute creation" (2.0.1)."""

import threading

from apipkg import ApiModule


def program():
    module = ApiModule("lazy", {"Path": "pathlib:Path"}, implprefix="lazy")
    threads = [threading.Thread(target=lambda: module.Path) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
