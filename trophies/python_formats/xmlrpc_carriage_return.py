"""`xmlrpc.client` turns a carriage return into a line feed.

Release: Python 3.13.0
Hunt: hunt.py::XmlRpcTest
Fault: another value came back
Oracle: round trip
Known: not found in its tracker (issue 139423 is the same of plistlib)

"it's the caller's responsibility to ensure that the string is free of characters that aren't
allowed in XML, such as the control characters with ASCII values between 0 and 31 (except, of
course, tab, newline and carriage return)".
"""

import xmlrpc.client

assert xmlrpc.client.loads(xmlrpc.client.dumps(("a\r",)))[0] == ("a\r",)
