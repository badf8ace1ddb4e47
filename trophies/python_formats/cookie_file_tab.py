"""`MozillaCookieJar` cannot read what it wrote if a cookie has a tab.

Release: Python 3.13.0
Hunt: hunt.py::CookieJarTest
Fault: Mozilla|LoadError
Oracle: round trip
Known: not found in its tracker (issue 99453 is about reading)

`load`: "Load cookies from a file" that `save` wrote. One cookie makes the whole file unreadable.
"""

from http.cookiejar import Cookie, MozillaCookieJar
from tempfile import NamedTemporaryFile

saved = MozillaCookieJar()
name, value = "n", "a\tb"
where = ("example.org", True, False, "/", True)
saved.set_cookie(Cookie(0, name, value, None, False, *where, False, 4102444800, False, "", "", {}))
with NamedTemporaryFile("w") as file:
    saved.save(file.name)
    read = MozillaCookieJar(file.name)
    read.load()
assert [cookie.value for cookie in read] == ["a\tb"]
