"""Random documents for cmark, which reads CommonMark and writes HTML: kinds of markup are features.

Every document is correct; the oracle is that the program does not crash, hang or fail.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from c_builds import built
from statements import StatementMachine, number, one_of, with_statements

from swarmtest.coverage import Program

DRAWS = {
    "w": one_of("alpha", "be ta", "g", "delta.", "1", "a_b", "x*y", "(p)", "q!"),
    "n": number(0, 120),
    "u": one_of("/u", "<a b>", "http://h.x/?q=%20", "#", "mailto:a@b.c", ""),
    "i": one_of("", "", "  ", "    ", "> ", "- ", "\t"),
}
CHOICES = {
    "title": ('"t"', "'t'", "(t)", '"a\\"b"', ""),
    "bullet": ("-", "*", "+"),
    "ending": (".", ")"),
    "fence": ("```", "~~~", "````"),
    "rule": ("***", "- - -", "___"),
    "tag": (
        "<b>",
        "</i>",
        "<a href='x'>",
        "<!-- c -->",
        "<?php ?>",
        "<!X y>",
        "<![CDATA[z]]>",
        "<a x=>",
    ),
    "blocktag": ("<div>", "<pre>", "<script>", "<!-- c", "</table>", "<custom-tag>", "<style>"),
    "entity": ("&amp;", "&copy;", "&#65;", "&#x1F600;", "&nosuch;", "&#0;", "&#xD800;"),
    "punctuation": ("*", "_", "[", "]", "<", "\\\\", "`", "!", "z"),
}
STATEMENTS = {
    "paragraph": "$i$w $w $w",
    "blank": "",
    "emphasis": "$w*$w*$w _$w_",
    "strong": "**$w** __$w__",
    "nested_emphasis": "***$w* $w** *a**b*c**",
    "open_emphasis": "*$w **$w _$w",
    "code_span": "`$w` `` a`b ``",
    "open_code_span": "``$w`",
    "heading": "$i# $w #",
    "deep_heading": "###### $w",
    "too_deep_heading": "####### $w",
    "setext": "$w\n===",
    "setext_two": "$w\n---",
    "rule": "\n$i$rule",
    "bullet": "$i$bullet $w",
    "nested_bullet": "$bullet $w\n  $bullet $w\n    $bullet $w",
    "loose_list": "$bullet $w\n\n$bullet $w",
    "numbered": "$i$n$ending $w",
    "empty_item": "$bullet\n",
    "quote": "> $w\n> > $w",
    "lazy_quote": "> $w\n$w",
    "indented_code": "\n    $w\n    $w\n",
    "fence": "$fence lang\n$w\n$fence",
    "open_fence": "$i$fence\n$w",
    "tab": "\t$w\t$w",
    "html_block": "\n$blocktag\n$w\n\n",
    "html_span": "$w $tag $w",
    "autolink": "<http://x.y/$w> <a@b.cd>",
    "not_autolink": "<ht tp://x> <a@@b>",
    "link": "[$w]($u)",
    "titled_link": "[$w]($u $title)",
    "image": "![$w]($u)",
    "nested_link": "[a [b]($u) c]($u)",
    "link_with_emphasis": "[*$w*]($u)",
    "reference": "[$w][r]",
    "short_reference": "[r] [r][]",
    "missing_reference": "[nosuch] [x][nosuch]",
    "definition": "\n[r]: $u $title\n",
    "broken_definition": "\n[r]:\n\n",
    "open_link": "[$w]($u",
    "entity": "$entity $entity",
    "escape": "\\$punctuation",
    "hard_break": "$w  \n$w",
    "escaped_break": "$w\\\n$w",
    "quotes": "\"$w\" '$w' it's",
    "dashes": "$w -- $w --- $w...",
    "unicode": "\u20ac\u00e9 *\u4f60* \ufffd",
    "nul": "a\0b",
}


class CmarkMachine(StatementMachine):
    program = Program([built("cmark"), "--smart", "--unsafe"], fork_server=True, timeout=5)
    steps = 12

    def input_of(self, statements: Sequence[str]) -> str:
        return "\n".join(statements) + "\n"


CmarkDocuments = with_statements(CmarkMachine, "CmarkDocuments", STATEMENTS, DRAWS, CHOICES)
"""One action for each kind of markup."""
