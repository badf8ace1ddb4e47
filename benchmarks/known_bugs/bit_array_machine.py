"""`bitstring.BitArray` beside a string of zeros and ones."""

from __future__ import annotations

from bitstring import BitArray

from swarmtest import Machine, action, binary, integers, text

BITS = text("01", max_size=12, min_size=1)
PLACES = integers(0, 63)


class BitArrayMachine(Machine):
    """Each operation happens to both; what they answer and what they hold must be the same."""

    steps = 15

    def start(self) -> None:
        self.text = "0110100110010110"
        self.array = BitArray(bin=self.text)

    def check(self) -> None:
        assert self.array.bin == self.text

    def place(self, place: int) -> int:
        return place % (len(self.text) + 1)

    @action(bits=BITS)
    def append(self, bits: str) -> None:
        self.array.append(BitArray(bin=bits))
        self.text += bits
        self.check()

    @action(bits=BITS)
    def prepend(self, bits: str) -> None:
        self.array.prepend(BitArray(bin=bits))
        self.text = bits + self.text
        self.check()

    @action(place=PLACES, bits=BITS)
    def insert(self, place: int, bits: str) -> None:
        place = self.place(place)
        self.array.insert(BitArray(bin=bits), place)
        self.text = self.text[:place] + bits + self.text[place:]
        self.check()

    @action(place=PLACES, bits=BITS, when=lambda self: len(self.text) >= 12)
    def overwrite(self, place: int, bits: str) -> None:
        place %= len(self.text) - len(bits) + 1
        self.array.overwrite(BitArray(bin=bits), place)
        self.text = self.text[:place] + bits + self.text[place + len(bits) :]
        self.check()

    @action(size=integers(1, 20))
    def delete_start(self, size: int) -> None:
        del self.array[:size]
        self.text = self.text[size:]
        self.check()

    @action(size=integers(1, 20))
    def delete_end(self, size: int) -> None:
        del self.array[-size:]
        self.text = self.text[:-size]
        self.check()

    @action(start=PLACES, stop=PLACES)
    def keep_slice(self, start: int, stop: int) -> None:
        start, stop = sorted((self.place(start), self.place(stop)))
        self.array = self.array[start:stop]
        self.text = self.text[start:stop]
        self.check()

    @action(place=PLACES, bits=BITS)
    def set_slice(self, place: int, bits: str) -> None:
        place = self.place(place)
        self.array[place : place + 4] = BitArray(bin=bits)
        self.text = self.text[:place] + bits + self.text[place + 4 :]
        self.check()

    @action
    def reverse(self) -> None:
        self.array.reverse()
        self.text = self.text[::-1]
        self.check()

    @action
    def invert(self) -> None:
        self.array.invert()
        self.text = self.text.translate({48: 49, 49: 48})
        self.check()

    @action(places=integers(0, 20), when=lambda self: self.text)
    def rotate(self, places: int) -> None:
        self.array.rol(places)
        places %= len(self.text)
        self.text = self.text[places:] + self.text[:places]
        self.check()

    @action(bits=text("01", max_size=3, min_size=1), when=lambda self: self.text)
    def find(self, bits: str) -> None:
        found = self.array.find("0b" + bits)
        place = self.text.find(bits)
        assert found == ((place,) if place >= 0 else ())

    @action
    def count(self) -> None:
        assert self.array.count(True) == self.text.count("1")

    @action(data=binary(max_size=6, min_size=3), offset=integers(0, 23))
    def load(self, data: bytes, offset: int) -> None:
        self.array = BitArray(bytes=data, offset=offset)
        self.text = "".join(f"{byte:08b}" for byte in data)[offset:]

    @action
    def copy(self) -> None:
        self.array = BitArray(bin=self.array.bin)
