"""An at sign after a group of addresses raises AttributeError.

Release: Python 3.13.0
Hunt: hunt.py::HeaderTest
Fault: AttributeError
Oracle: an exception
Known: not found in its tracker (users met it: scanner/asimap issue 285)

`raise_on_defect` of the policy: "If False (the default), defects will be passed to the
register_defect() method."
"""

import email
import email.policy

text = "To: a:;@" + "\n\n"
message = email.message_from_string(text, policy=email.policy.default)
message["To"]
