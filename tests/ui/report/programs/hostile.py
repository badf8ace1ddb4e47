"""<script>alert('doc')</script> & "quotes": everything that a careless page would believe."""

from swarmtest import Machine, action


class Evil(Machine):
    steps = 20

    def start(self):
        self.n = 0

    @action
    def größer(self):
        self.n += 1
        self.event("<b>bold</b> & 'single' \"double\" </script> \u202e" + "x" * 200)
        if self.n > 12:
            raise ValueError("</script><script>alert(1)</script><img src=x onerror=alert(2)> \x00")

    @action
    def reset_everything_that_there_is_in_this_machine_with_a_very_long_name_that_never_ends(self):
        self.n = 0

    @action
    def look(self):
        self.seen = "</td></tr></table><script>alert(3)</script><textarea>"  # \x07 $x$ %s {{ 7*7 }}
