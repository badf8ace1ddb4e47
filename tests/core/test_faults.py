"""Two failures of the same bug are one fault; failures of different bugs are different faults."""

import json
from pathlib import Path
from typing import Any

import pytest

import swarmtest
from swarmtest import Fault
from swarmtest.core.faults import fault_of_exception, python_stack_of_dump
from swarmtest.core.messages.shapes import normalised


def fault_of(function, *arguments):
    try:
        function(*arguments)
    except BaseException as error:
        return fault_of_exception(error)
    raise AssertionError("it did not fail")


class Full(Exception):
    pass


def push(message):
    raise Full(message)


def pop(message):
    raise Full(message)


def test_a_signature_has_the_type_the_message_and_the_innermost_function_with_its_statement():
    fault = fault_of(push, "the stack is full")
    assert fault.kind == "exception"
    assert fault.signature == "Full: the stack is full [push: raise Full(message)]"
    assert "Full: the stack is full" in fault.details


SAME = [
    ("index 17 is out of range", "index 4 is out of range"),
    ("expected -3, got 2.5e-7", "expected 12, got 0.1"),
    ("<Stack object at 0x7f3a12> is full", "<Stack object at 0xdeadbeef> is full"),
    ("no user 'ann'", "no user 'bob'"),
    ("no user 'ann'", 'no user "o\'neil"'),
    ("1 != 2\n  where 1 = len([7])", "3 != 5\n  where 3 = len([9])"),
    ("unknown name '" + "a" * 300 + "'", "unknown name '" + "b" * 250 + "'"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_values_that_vary_do_not_make_another_fault(one, other):
    assert fault_of(push, one) == fault_of(push, other)
    assert fault_of(push, one).id == fault_of(push, other).id


def test_lists_of_another_length_do_not_make_another_fault():
    one = fault_of(push, f"{[1, 2]} != {[1, 2, 3]}")
    assert one == fault_of(push, f"{[4]} != {[5, 6, 7, 8]}")


def test_another_function_makes_another_fault():
    assert fault_of(push, "full") != fault_of(pop, "full")


def test_another_type_makes_another_fault():
    def overflow(kind):
        raise kind("full")

    assert fault_of(overflow, Full) != fault_of(overflow, ValueError)


def test_another_text_makes_another_fault():
    assert fault_of(push, "stack is full") != fault_of(push, "stack is closed")


def test_apostrophes_are_not_quotation_marks():
    assert fault_of(push, "can't push: isn't open") != fault_of(push, "can't pop: isn't open")


def test_digits_that_belong_to_a_name_stay():
    assert normalised("utf8 in x2") == "utf8 in x2"


def test_the_line_is_no_part_of_the_fault():
    source = "def f():\n    raise ValueError('no')\n"
    faults = []
    for moved in (source, "\n\n\n" + source):
        space: dict[str, Any] = {}
        exec(compile(moved, "/home/me/stack.py", "exec"), space)
        faults.append(fault_of(space["f"]))
    assert faults[0] == faults[1]


def test_the_standard_library_is_not_the_code_under_test():
    def parse_settings():
        json.loads("{")

    signature = fault_of(parse_settings).signature
    assert "JSONDecodeError" in signature
    assert "raw_decode" not in signature
    assert "parse_settings: json.loads(" in signature


def test_a_package_whose_name_begins_like_ours_is_the_users():
    ours = Path(swarmtest.__file__).parent
    space: dict[str, Any] = {}
    exec(compile("def f(): 1 / 0", f"{ours}_plugin/stack.py", "exec"), space)
    assert "[f]" in fault_of(space["f"]).signature


def test_swarmtests_own_frames_are_not_part_of_it():
    ours = Path(swarmtest.__file__).parent
    space: dict[str, Any] = {}
    exec(compile("def step(call): call('no')", f"{ours}/subjects/machine.py", "exec"), space)
    assert "step" not in fault_of(space["step"], push).signature


def test_an_exception_that_cannot_print_itself_is_a_fault_all_the_same():
    class Mute(Exception):
        def __str__(self):
            raise ValueError("not today")

        __repr__ = __str__

    def f():
        raise Mute

    fault = fault_of(f)
    assert fault.signature.startswith("Mute: (its message cannot be printed) [")
    assert "Mute" in fault.details


def count_down(n):
    return count_down(n - 1) if n != 0 else push("done")


def even(n):
    return odd(n - 1)


def odd(n):
    return even(n - 1)


def test_recursion_shows_a_function_once_whatever_its_depth():
    assert fault_of(count_down, 5) == fault_of(count_down, 50)


def test_endless_recursion_is_a_fault_with_short_details():
    fault = fault_of(count_down, -1)
    assert fault.signature == "RecursionError [count_down]"
    assert "count_down" in fault.signature
    assert len(fault.details) < 10_000


def test_endless_recursion_of_two_functions_is_one_fault_wherever_it_ends():
    assert fault_of(even, 0) == fault_of(odd, 0)


def refuse_a_circle():
    raise RecursionError("links in a circle")


def test_a_recursion_error_that_a_program_raises_itself_is_told_by_its_message():
    assert fault_of(refuse_a_circle).signature == (
        "RecursionError: links in a circle [refuse_a_circle]"
    )


def test_a_long_message_is_cut():
    assert len(normalised("word " * 1000)) <= 160


def test_text_that_cannot_be_encoded_still_has_an_id():
    fault = fault_of(push, "bad character \ud800")
    assert len(fault.id) == 8
    fault.signature.encode()
    fault.details.encode()


def test_ids_are_the_same_in_every_store_for_good():
    assert Fault("exception", "OverflowError: stack is full [stack.push]").id == "4ee18053"
    assert Fault("timeout", "no end after 1 s").id == "ecdcf711"


def test_details_are_no_part_of_what_a_fault_is():
    one, other = (Fault("exception", "Full [push]", details) for details in ("line 1", "line 2"))
    assert one == other
    assert len({one, other}) == 1
    assert one != Fault("invariant", "Full [push]")


def test_a_label_goes_first():
    try:
        push("full")
    except Full as error:
        fault = fault_of_exception(error, "invariant", "never_full:")
    assert fault.kind == "invariant"
    assert fault.signature == "never_full: Full: full [push: raise Full(message)]"


def test_the_stack_of_a_dead_process_is_that_of_the_code_under_test():
    dump = f"""Fatal Python error: Segmentation fault

Current thread 0x00007f (most recent call first):
  File "{json.__file__}", line 3 in loads
  File "/home/me/parser.py", line 9 in parse
  File "/home/me/parser.py", line 1 in main
  File "{swarmtest.__file__}", line 1 in run

Thread 0x00008f (most recent call first):
  File "/home/me/other.py", line 9 in idle
"""
    assert python_stack_of_dump(dump) == ["parse", "main"]


def test_a_dump_of_nothing_has_no_stack():
    assert python_stack_of_dump("") == []


def failing(message, deeper=False):
    try:
        if deeper:
            int(message)
        raise RuntimeError(message)
    except (RuntimeError, ValueError) as error:
        return error


def test_a_traceback_that_is_printed_again_says_the_same_and_another_says_another():
    first, again, other = (fault_of_exception(failing(m)).details for m in ("x", "x", "y"))
    deeper = fault_of_exception(failing("x", deeper=True)).details
    assert first == again
    assert "RuntimeError: x" in first
    assert "RuntimeError: y" in other
    assert "ValueError" in deeper


def raised_from(cause):
    try:
        raise ValueError(cause)
    except ValueError as inner:
        raise RuntimeError("same") from inner


@pytest.mark.parametrize("cause", ["first", "second"])
def test_what_an_exception_was_raised_from_is_in_its_details_every_time(cause):
    with pytest.raises(RuntimeError) as caught:
        raised_from(cause)
    assert f"ValueError: {cause}" in fault_of_exception(caught.value).details
