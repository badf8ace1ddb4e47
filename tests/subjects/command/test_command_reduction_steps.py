"""While a test is reduced, only the steps that its fault is about are run."""

from __future__ import annotations

from swarmtest.reduce.reduction import reduce_test

STEPS = """
[[steps]]
name = "valid"
run = "grep -q 7 {test}"
on_exit = "invalid"
[[steps]]
name = "prepare"
run = "cp {test} copy"
[[steps]]
name = "other"
run = "sh -c 'echo other >> {here}/log'"
[[steps]]
name = "fails"
run = "sh -c '! grep -q 13 copy'"
needs = ["prepare"]
"""


def failing_test(subject):
    text = "".join(f"{i}\n" for i in range(1, 41))
    test = {"format": "swarmtest command test 1", "subject": "", "text": text}
    return test, subject.replay(test).fault


def test_steps_that_the_fault_is_not_about_are_left_out_meanwhile(steps, tmp_path):
    subject = steps(STEPS)
    test, fault = failing_test(subject)
    assert fault.signature.startswith("fails: exit status 1")
    before = (tmp_path / "log").read_text().count("other")
    reduced = reduce_test(subject, test, fault.id)
    after = (tmp_path / "log").read_text().count("other")
    # Before, to see which steps the fault is about; at the end, to see that all of them agree.
    assert after - before <= 4 < reduced.runs
    assert "only" not in reduced.test


def test_steps_that_say_what_a_valid_test_is_are_run_all_along(steps):
    subject = steps(STEPS)
    test, fault = failing_test(subject)
    reduced = reduce_test(subject, test, fault.id)
    left = reduced.test["text"].split()
    assert len(left) == 2
    assert "13" in left
    assert any("7" in line for line in left)


def test_a_fault_that_only_shows_with_all_steps_is_reduced_with_all(steps):
    """The step that fails reads what another one, that it does not say it needs, has written."""
    subject = steps(STEPS.replace('needs = ["prepare"]\n', ""))
    test, fault = failing_test(subject)
    reduced = reduce_test(subject, test, fault.id)
    assert "13" in reduced.test["text"].split()
    assert len(reduced.test["text"].split()) == 2
