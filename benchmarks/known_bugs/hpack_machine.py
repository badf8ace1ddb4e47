"""`hpack`: an encoder and a decoder, which have to keep the same table of headers."""

from __future__ import annotations

from hpack.hpack import Decoder, Encoder

from swarmtest import Machine, action, integers, lists, tuples

NAMES = integers(0, 40)
VALUES = integers(0, 9)
SIZES = integers(0, 4000)
FULL = 4096


class HpackMachine(Machine):
    """What was encoded is decoded at once."""

    steps = 10

    def start(self) -> None:
        self.encoder, self.decoder = Encoder(), Decoder()

    def transfer(self, headers: list[tuple[str, str]], huffman: bool = True) -> None:
        block = self.encoder.encode(headers, huffman=huffman)
        assert [tuple(header) for header in self.decoder.decode(block)] == headers

    @action(name=NAMES, value=VALUES)
    def send(self, name: int, value: int) -> None:
        self.transfer([(f"name{name}", f"value{value}")])

    @action(name=NAMES, value=VALUES)
    def send_plain(self, name: int, value: int) -> None:
        self.transfer([(f"name{name}", f"value{value}")], huffman=False)

    @action(headers=lists(tuples(NAMES, VALUES), max_size=3))
    def send_several(self, headers: list[tuple[int, int]]) -> None:
        self.transfer([(f"name{name}", f"value{value}") for name, value in headers])

    @action
    def send_known(self) -> None:
        self.transfer([(":method", "GET")])

    @action(size=SIZES)
    def resize(self, size: int) -> None:
        self.encoder.header_table_size = size

    @action
    def resize_fully(self) -> None:
        self.encoder.header_table_size = FULL

    @action
    def restart(self) -> None:
        self.start()

    @action(when=lambda self: not self.encoder.header_table.resized)
    def compare_tables(self) -> None:
        assert list(self.encoder.header_table.dynamic_entries) == list(
            self.decoder.header_table.dynamic_entries
        )
