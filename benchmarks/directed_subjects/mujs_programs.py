"""Random programs for mujs, an interpreter of JavaScript in C: kinds of statements are features.

An exception inside a statement is a correct outcome; the oracle is that the interpreter itself does
not crash, hang or fail.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from c_builds import built
from statements import StatementMachine, number, one_of, register, with_statements

from swarmtest.coverage import Program

DRAWS = {
    **dict.fromkeys("abc", register),
    "n": number(-9, 99),
    "m": number(-2, 5),
    "x": one_of("0.5", "-2.25", "1e300", "NaN", "Infinity", "1e21", "4294967296"),
    "s": one_of("'ab'", "'a b(c)'", "'10'", "'0x1f'", "''", "'\\u20acx'", "'abc abc'", "'k'"),
}
CHOICES = {
    "arithmetic": ("+", "-", "*", "/", "%"),
    "bits": ("&", "|", "^", "<<", ">>", ">>>"),
    "order": ("<", "<=", ">", ">=", "==", "!=", "===", "!=="),
    "unary": ("-", "+", "!", "~", "typeof ", "void "),
    "pattern": (
        "/a+/",
        "/(b)(c)?/g",
        "/^[a-m]/i",
        "/\\d{1,3}/",
        "/(?:x|y)*?z/",
        "/\\bk\\b/",
        "/(a)\\1/",
    ),
    "replaced": ("'<$$&>'", "'$$1'", "function (t) { return t + $n; }"),
    "math": ("abs", "floor", "sqrt", "sin", "exp", "round", "atan", "log"),
    "number": ("toFixed($m)", "toPrecision(5)", "toExponential(2)", "toString(16)"),
    "date": ("toISOString()", "getUTCDay()", "toUTCString()", "getTime()", "setUTCHours($n)"),
    "escape": ("encodeURIComponent", "decodeURI", "escape", "unescape", "parseFloat", "isNaN"),
}
STATEMENTS = {
    "integer": "$a = $n",
    "float": "$a = $x",
    "text": "$a = $s",
    "array": "$a = [$b, $n, $s]",
    "object": "$a = {k: $b, 'x y': $n, 7: $c}",
    "regexp": "$a = $pattern",
    "accessor": "$a = {get k() { return $n; }, set k(v) { R[1] = v; }}",
    "function": "$a = function (v) { return v || $b; }",
    "recursion": "$a = (function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2); })($m)",
    "add": "$a = $b $arithmetic $c",
    "bitwise": "$a = $b $bits $c",
    "order": "$a = $b $order $c",
    "unary": "$a = $unary$b",
    "logic": "$a = $b && $c || $a",
    "conditional": "$a = $b ? $c : $n",
    "increment": "$a++; --$b",
    "update": "$a += $b; $c <<= 2",
    "comma": "$a = ($b, $c)",
    "index": "$a = $b[$c]",
    "member": "$a.k = $b; $c = $a.k",
    "delete": "delete $a.k; delete $b[0]",
    "membership": "$a = 'k' in $b",
    "instance": "$a = $b instanceof Object",
    "branch": "if ($b) { $a = $c; } else { $a = $n; }",
    "while_loop": "var i = 0; while (i < 5) { i++; if (i == $m) continue; $a = i; }",
    "do_loop": "var i = 0; do { i++; if (i > 3) break; } while (true)",
    "for_loop": "for (var i = 0; i < 4; i++) $a = i",
    "for_in": "for (var k in $b) { $a = k; }",
    "switch": "switch ($b) { case $n: $a = 1; break; case 'k': $a = 2; default: $a = 3; }",
    "label": "outer: for (;;) { for (;;) break outer; }",
    "with_object": "with ($b) { $a = k; }",
    "throw": "throw $b",
    "try_catch": "try { $a = $b.k.k; } catch (e) { $a = e.message; } finally { $c = 1; }",
    "eval": "$a = eval('1 + ' + $n)",
    "call": "$a = $b($c)",
    "method": "$a = $b.toString()",
    "apply": "$a = Math.max.apply(null, $b)",
    "bind": "$a = Object.keys.bind(null, $b)",
    "construct": "$a = new $b($c)",
    "prototype": "$a = Object.create($b)",
    "define": "Object.defineProperty($b, 'p', {value: $n, writable: false})",
    "freeze": "Object.freeze($b); $a = Object.isFrozen($b)",
    "keys": "$a = Object.keys($b)",
    "push": "$b.push($c, $n)",
    "pop": "$a = $b.pop()",
    "shift": "$a = $b.shift(); $b.unshift($n)",
    "slice": "$a = $b.slice($m, 3)",
    "splice": "$a = $b.splice($m, 1, $s)",
    "sort": "$b.sort()",
    "sort_by": "$b.sort(function (x, y) { return x - y; })",
    "map": "$a = $b.map(function (v) { return v + 1; })",
    "filter": "$a = $b.filter(function (v) { return v; })",
    "reduce": "$a = $b.reduce(function (x, y) { return x + y; })",
    "join": "$a = $b.join($s)",
    "concat": "$a = $b.concat($c)",
    "reverse": "$b.reverse()",
    "match": "$a = String($b).match($pattern)",
    "replace": "$a = String($b).replace($pattern, $replaced)",
    "split": "$a = String($b).split($pattern)",
    "test": "$a = $pattern.test($b)",
    "substring": "$a = String($b).substring($m, $n)",
    "character": "$a = String($b).charCodeAt($m); $c = String.fromCharCode($n)",
    "case": "$a = String($b).toUpperCase().toLowerCase()",
    "stringify": "$a = JSON.stringify($b, null, $m)",
    "parse": '$a = JSON.parse(\'[1, {"k": null}, "x\\\\n"]\')',
    "parse_value": "$a = JSON.parse($b)",
    "number": "$a = Number($b).$number",
    "parse_number": "$a = parseInt($b, $n)",
    "math": "$a = Math.$math($b)",
    "date": "$a = new Date($n * 86400000).$date",
    "parse_date": "$a = Date.parse('2020-02-$n')",
    "escape": "$a = $escape($b)",
    "error": "$a = new TypeError($b).toString()",
    "print": "print($b)",
    "collect": "gc(false)",
}


class MujsMachine(StatementMachine):
    program = Program([built("mujs"), "{test}"], fork_server=True, timeout=5, suffix=".js")

    def input_of(self, statements: Sequence[str]) -> str:
        lines = (f"try {{ {text}; }} catch (error) {{}}" for text in statements)
        return "var R = [];\n" + "\n".join(lines) + "\n"


MujsPrograms = with_statements(MujsMachine, "MujsPrograms", STATEMENTS, DRAWS, CHOICES)
"""One action for each kind of statement."""
