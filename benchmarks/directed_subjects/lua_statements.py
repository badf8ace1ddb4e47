"""The statements that random Lua programs are made of, by feature.

All of them work on six registers, so that what one leaves another finds: `sort` does something only
where there is a table to sort, which `table` makes and `insert` fills. ``$a``, ``$b``, ``$c`` are
registers, ``$n`` and ``$m`` whole numbers, ``$x`` a fraction, ``$s`` a text; a list in
`CHOICES` stands for one of its members.
"""

from __future__ import annotations

CHOICES = {
    "arithmetic": ("+", "-", "*", "/"),
    "division": ("//", "%"),
    "bits": ("&", "|", "~", "<<", ">>"),
    "order": ("<", "<=", ">", ">="),
    "same": ("==", "~="),
    "format": ("%d", "%5.2f", "%x", "%q", "%s", "%-10s|", "%c", "%g", "%i%%", "%a", "%.3s", "%p"),
    "pattern": ("%a+", "(%w)(%w)", "^a", "b$", "[a-c]*", "%d?", "%b()", "%f[%w]%w+", "(a*(.)%w)"),
    "replaced": ("'<%0>'", "'%1'", "$c", "{a = $c, b = false}", "string.upper"),
    "packing": ("i4", "<I2", "d", "s1", "z", "!4 i1 i4", ">j", "c5", "f"),
    "whole": ("math.floor", "math.ceil", "math.tointeger", "math.type", "math.abs"),
    "real": ("math.sqrt", "math.sin", "math.exp", "math.log", "math.modf"),
    "collecting": ("collect", "step", "count", "generational", "incremental"),
    "case": ("upper", "lower", "reverse", "len"),
}
STATEMENTS = {
    # Values
    "integer": "$a = $n",
    "float": "$a = $x",
    "text": "$a = $s",
    "nil": "$a = nil",
    "table": "$a = {$b, $c, $n, k = $b, [$n] = $c}",
    "closure": "local u = $b; $a = function(v) u = v or u; return u end",
    "variadic": "$a = function(...) local n = select('#', ...); return n, ... end",
    # Expressions
    "add": "$a = $b $arithmetic $c",
    "divide": "$a = $b $division $c",
    "power": "$a = -$b ^ 2",
    "bitwise": "$a = ~$b $bits $c",
    "order": "$a = $b $order $c",
    "equal": "$a = $b $same $c",
    "concatenate": "$a = $b .. $c",
    "length": "$a = #$b",
    "logic": "$a = $b and $c or not $a",
    "index": "$a = $b[$c]",
    "assign": "$b[$c] = $a",
    "swap": "$a, $b = $b, $a",
    # Control
    "branch": "if $b then $a = $c elseif $c then $a = $n else $a = $s end",
    "while_loop": "local i = 0; while i < 5 do i = i + 1; if i == $n then break end; $a = i end",
    "repeat_loop": "local i = 0; repeat local j = i; i = i + 1; $a = j until j > 3",
    "numeric_loop": "local k = 0; for i = $b, $n, $m do k = k + 1; if k > 9 then break end end",
    "pairs_loop": "for k, v in pairs($b) do $a = v end",
    "ipairs_loop": "for i, v in ipairs($b) do $a = i end",
    "jump": "local i = 0; ::top:: i = i + 1; if i < 4 then goto top end; $a = i",
    # Functions and errors
    "call": "$a = $b($c)",
    "method": "$b.m = function(self, v) return v, self end; $a = $b:m($c)",
    "error": "error($b, $m)",
    "protected_call": "$a = select(2, pcall($b, $c))",
    "traceback": "$a = select(2, xpcall($b, debug.traceback, $c))",
    "load": "$a = load('return ' .. tostring($b))",
    "dump": "$a = load(string.dump($b, $m > 0), 'd', 'b')",
    "hook": "debug.sethook(function() end, 'clr', 3); $a = $n; debug.sethook()",
    # Coroutines
    "coroutine": "$a = coroutine.create(function(v) while true do v = coroutine.yield(v) end end)",
    "resume": "$a = select(2, coroutine.resume($b, $c))",
    "wrap": "$a = coroutine.wrap(function(...) coroutine.yield(...); error($s) end)",
    "status": "$a = coroutine.status($b)",
    "close_coroutine": "$a = coroutine.close($b)",
    # Metatables
    "inherit": "setmetatable($a, {__index = $b, __newindex = $c})",
    "operators": "local f = function(x) return $n end; "
    "setmetatable($a, {__add = f, __concat = f, __unm = f, __band = f, __idiv = f})",
    "comparing": "local f = function() return $m > 0 end; "
    "setmetatable($a, {__eq = f, __lt = f, __le = f, __len = function() return $n end})",
    "callable": "setmetatable($a, {__call = function(self, v) return v end})",
    "printable": "setmetatable($a, {__tostring = function() return $s end, __name = 'N'})",
    "closable": "local c <close> = setmetatable({}, {__close = function(o, e) $a = e end}); $b($c)",
    "finaliser": "setmetatable($a, {__gc = function() R[1] = $n end})",
    "weak": "$a = setmetatable({$b, [{}] = $c}, {__mode = $m > 0 and 'k' or 'v'})",
    "raw": "rawset($a, $b, $c); $b = rawget($a, $b); $c = rawlen($a)",
    # Strings
    "format": "$a = string.format('$format', $b)",
    "find": "$a = string.find($b, '$pattern', $m)",
    "match": "$a = string.match($b, '$pattern')",
    "gmatch": "for w in string.gmatch($b, '$pattern') do $a = w end",
    "gsub": "$a = string.gsub($b, '$pattern', $replaced)",
    "repeated": "$a = string.rep($b, $m, ',')",
    "substring": "$a = string.sub($b, $m, $n)",
    "characters": "$a = string.char(string.byte($b, 1, -1))",
    "case": "$a = string.$case($b)",
    "pack": "$a = string.pack('$packing', $b)",
    "unpack": "$a = string.unpack('$packing', $b)",
    "utf8": "$a = utf8.char(string.byte($b), 8364); $c = utf8.len($a, 1)",
    "codes": "for p, c in utf8.codes($b) do $a = c end",
    # Tables
    "insert": "table.insert($b, $c)",
    "insert_at": "table.insert($b, $m, $c)",
    "remove": "$a = table.remove($b, 1)",
    "join": "$a = table.concat($b, $s)",
    "sort": "table.sort($b)",
    "sort_by": "table.sort($b, function(x, y) return tostring(x) > tostring(y) end)",
    "move": "table.move($b, 1, 3, $m, $c)",
    "spread": "$a = table.pack(table.unpack($b))",
    "next": "$a = next($b, $c)",
    # Numbers, and the rest
    "number": "$a = tonumber($b)",
    "based_number": "$a = tonumber($b, 16)",
    "print": "io.write(tostring($b), '\\n')",
    "whole": "$a = $whole($b)",
    "real": "$a = $real($b)",
    "extreme": "$a = math.max($b, $c, $x)",
    "random": "$a = math.random($n)",
    "date": "$a = os.date('!%H %j %c', $b)",
    "time": "$a = os.time({year = 2000 + $n, month = $m, day = $b})",
    "collect": "collectgarbage('$collecting')",
}
