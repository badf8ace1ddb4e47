"""`ElementTree` turns a carriage return in a text into a line feed.

Release: Python 3.13.0
Hunt: hunt.py::ElementTextTest
Fault: another value came back
Oracle: round trip
Known: yes, cpython issue 91767, closed

In attributes the same character is written as `&#13;` and comes back; in texts it is written as
it is, which XML readers must turn into a line feed.
"""

from xml.etree import ElementTree

element = ElementTree.Element("a")
element.text = "\r"
assert ElementTree.fromstring(ElementTree.tostring(element)).text == "\r"
