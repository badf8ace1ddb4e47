"""Random JavaScript programs against QuickJS (``pip install quickjs``).

    swarmtest run examples/javascript.py --time 60s

A program passes if the engine survives it, gives the same answers when it runs it again, and agrees
with itself: ``check(value)`` does the same to a value in two ways (spread it into an object or
`Object.assign` it, turn it into text by `String` or by a template, ...), which must not differ.

Known to be found in quickjs 1.19.4: spreading a text into an object gives an empty object.
"""

import json

import quickjs

from swarmtest.subjects import GrammarSubject

MEMORY = 64 * 1024 * 1024
SECONDS = 2
PROGRAM = """
(function () {
  var answers = [], wrong = [], left = 40, calls = 12, e, i, k, m;
  var a = 1, b = "ab", c = [1, 2, 3], d = {x: 1, y: "b"};
  function shown(value, depth) {
    if (typeof value === "symbol" || typeof value === "function") return typeof value;
    if (typeof value === "bigint") return value + "n";
    if (Object.is(value, -0)) return "-0";
    if (typeof value === "string") return JSON.stringify(value.slice(0, 60));
    if (value === null || typeof value !== "object") return String(value);
    if (depth > 2) return "...";
    var keys = Object.keys(value).slice(0, 20);
    return "{" + keys.map(function (k) { return k + ":" + shown(value[k], depth + 1); }) + "}";
  }
  function same(what, one, other) {
    var first = shown(one, 0), second = shown(other, 0);
    if (first !== second) wrong.push(what);
  }
  function check(v) {
    if (typeof v === "symbol" || typeof v === "function") return;
    same("String and template", String(v), `${v}`);
    same("typeof", typeof v, typeof [v][0]);
    if (v === null || v === undefined) return;
    var fields = Object.values(Object.getOwnPropertyDescriptors(v));
    if (fields.some(function (field) { return field.get; })) return;
    same("spread and assign", {...v}, Object.assign({}, v));
    same("keys and entries", Object.keys(v), Object.entries(v).map((pair) => pair[0]));
    if (typeof v[Symbol.iterator] === "function") same("spread and from", [...v], Array.from(v));
    if (Array.isArray(v)) same("slice and concat", v.slice(), [].concat(v));
  }
  function log(value) { if (answers.length < 50) answers.push(shown(value, 0)); }
  function steps() { return left-- > 0; }
  function f(x) { return calls-- > 0 ? x : 0; }
  try {
    (function () { do { %s } while (false); })();
  } catch (error) { log(error instanceof Error ? error.name : "thrown"); }
  [a, b, c, d].forEach(log);
  return JSON.stringify([answers, wrong]);
})()
"""


class Disagreement(AssertionError):
    """The same was done in two ways, with different results."""


def run(program):
    """Run a program; raise if the engine is wrong."""
    first = answers(program)
    if first is None:
        return
    second = answers(program)
    if second is not None and second != first:
        raise Disagreement(f"first {first}, then {second}")
    for what in json.loads(first)[1]:
        raise Disagreement(what)


def answers(program):
    """What a program logs; None if it is refused or needs too much time or memory."""
    context = quickjs.Context()
    context.set_memory_limit(MEMORY)
    context.set_time_limit(SECONDS)
    context.set_max_stack_size(512 * 1024)
    try:
        return context.eval(PROGRAM.replace("%s", program))
    except quickjs.JSException:
        return None


javascript = GrammarSubject("javascript.lark", run, length=(10, 150), suffix=".js")
