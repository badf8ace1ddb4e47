"""An address that is one quotation mark raises IndexError.

Release: Python 3.13.0
Hunt: hunt.py::HeaderTest
Fault: IndexError
Oracle: an exception
Known: yes, cpython issue 148518, open since April 2026

`raise_on_defect` of the policy: "If False (the default), defects will be passed to the
register_defect() method."
"""

import email
import email.policy

text = 'To: "' + "\n\n"
message = email.message_from_string(text, policy=email.policy.default)
message["To"]
