"""Coverage: which targets of a program each test reaches.

For Python, `import_hook` loads the program with probes, which `weaving` puts into the source;
`file_probes` reads what they wrote, and `watch` combines the files. `monitoring` uses the
interpreter instead. `native` covers compiled programs, `totals` adds up tests, and `interchange`
reads and writes the file formats of other tools.
"""

from swarmtest._exports import exports_of

__getattr__, __dir__ = exports_of(__name__)
