"""Hunt with what is written and read again; run it with `swarmtest run hunt.py`."""

import codecs
import configparser
import io
import netrc
import os
import plistlib
import string
import tempfile
import tokenize
import xmlrpc.client
from http.cookiejar import Cookie, LWPCookieJar, MozillaCookieJar
from xml.etree import ElementTree

from swarmtest import Machine, action, integers, lists, sampled_from, text


class ConfigParserTest(Machine):
    @action(key=text("ab=: #", 3, 1), value=text("xy#\n", 4))
    def write(self, key, value):
        config, written = configparser.RawConfigParser(), io.StringIO()
        config["a"] = {key: value}
        config.write(written)
        again = configparser.RawConfigParser()
        again.read_string(written.getvalue())
        assert again.options("a") == config.options("a"), "keys"
        assert again["a"][key] == value.strip(), "values"


class PlistTest(Machine):
    @action(value=text("a<&\r\n\té\x85", 4))
    def write_xml(self, value):
        assert plistlib.loads(plistlib.dumps(value)) == value, "xml"

    @action(values=lists(sampled_from([0, 0.0, -0.0, 1, 1.0, True, False, "", b"", 2**63]), 4))
    def write_binary(self, values):
        written = plistlib.dumps(values, fmt=plistlib.FMT_BINARY)
        assert repr(plistlib.loads(written)) == repr(values), "binary"


class NetrcTest(Machine):
    @action(password=text("ab \"'#", 4, 1))
    def write(self, password):
        login = netrc.netrc(os.devnull)
        login.hosts["example.org"] = ("me", "", password)
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(repr(login))
            file.flush()
            assert netrc.netrc(file.name).hosts == login.hosts, "other hosts"


class CookieJarTest(Machine):
    @action(value=text('ab";= \t', 4), jar=sampled_from([LWPCookieJar, MozillaCookieJar]))
    def save(self, value, jar):
        saved, where = jar(), ("example.org", True, False, "/", True)
        cookie = Cookie(0, "n", value, None, False, *where, False, 4102444800, False, "", "", {})
        saved.set_cookie(cookie)
        with tempfile.NamedTemporaryFile("w") as file:
            saved.save(file.name)
            read = jar(file.name)
            read.load()
        assert [cookie.value for cookie in read] == [value], "another value came back"


class XmlRpcTest(Machine):
    @action(value=text("a<&>\r\n\té", 4))
    def write(self, value):
        written = xmlrpc.client.dumps((value,))
        assert xmlrpc.client.loads(written)[0] == (value,), "another value came back"


class ElementTextTest(Machine):
    @action(value=text("a<&>\r\n\té", 4, 1))
    def write(self, value):
        element = ElementTree.Element("a", b=value)
        element.text = value
        read = ElementTree.fromstring(ElementTree.tostring(element))
        assert read.get("b") == value, "another attribute came back"
        assert read.text == value, "another value came back"


class TokenizeTest(Machine):
    steps = (1, 8)

    def start(self):
        self.source = ""

    @action(
        part=sampled_from(["x", " ", "\n", "(", ")", "'a'", "if x:\n", "    ", "\f", "#c", ";"])
    )
    def write(self, part):
        self.source += part
        try:
            compile(self.source, "", "exec")
            tokens = list(tokenize.generate_tokens(io.StringIO(self.source).readline))
        except (SyntaxError, tokenize.TokenError):
            return
        again = tokenize.generate_tokens(io.StringIO(tokenize.untokenize(tokens)).readline)
        assert [token[:2] for token in again] == [token[:2] for token in tokens], "other tokens"


PARTS = ["{", "}", "{}", "{0}", ".real", "[0]", "!r", ":", ">5", "{a}", "{{", "{.real}", "{:{}}"]


class FormatterTest(Machine):
    @action(parts=lists(sampled_from(PARTS), 3))
    def format(self, parts):
        template = "".join(parts)
        results = []
        for form in (template.format, lambda *a, **k: string.Formatter().format(template, *a, **k)):
            try:
                results.append(form(3, [4], a="b"))
            except (LookupError, ValueError, AttributeError, TypeError):
                results.append(None)
        assert results[0] is None or results[0] == results[1], "another result"


class CodecTest(Machine):
    raises = UnicodeError
    names = sampled_from(["utf-8", "utf-7", "utf-16", "hz", "iso2022_jp", "gb18030", "punycode"])

    @action(name=names, value=text("ab-+~ü\u3042", 5), at=integers(1, 6))
    def decode(self, name, value, at):
        data, decoder = value.encode(name), codecs.getincrementaldecoder(name)()
        parts = decoder.decode(data[:at]) + decoder.decode(data[at:], True)
        assert parts == data.decode(name), f"decoded {name}"

    @action(name=names, value=text("ab-+~ü\u3042", 5), at=integers(1, 6))
    def encode(self, name, value, at):
        encoder = codecs.getincrementalencoder(name)()
        data = encoder.encode(value[:at]) + encoder.encode(value[at:], True)
        assert data.decode(name) == value.encode(name).decode(name), f"encoded {name}"
