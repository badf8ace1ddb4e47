"""Hunt for exceptions that `email` should report as defects; `swarmtest run hunt.py`."""

import email
import email.policy

from swarmtest import Machine, action, sampled_from

PIECES = ["a", "@", "<", ">", '"', "(", ")", ",", ":", ";", "[", "]", ".", " ", "=?utf-8?q?", "?="]


class HeaderTest(Machine):
    steps = (1, 8)

    def start(self):
        self.value = ""

    @action(piece=sampled_from(PIECES), name=sampled_from(["To", "Date", "Message-ID", "Subject"]))
    def add(self, piece, name):
        self.value += piece
        text = f"{name}: {self.value}\n\n"
        message = email.message_from_string(text, policy=email.policy.default)
        message[name]
