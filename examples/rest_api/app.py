"""A REST API for notes as a WSGI application, a test client, and a machine that uses it."""

import io
import json

from swarmtest import Machine, action, integers, sampled_from


class Notes:
    """The program under test: POST /notes, GET, PUT and DELETE /notes/N, POST /notes/N/pin."""

    def __init__(self):
        self.notes = {}
        self.pinned = []
        self.last = 0

    def __call__(self, environ, start_response):
        method = environ["REQUEST_METHOD"]
        path = environ["PATH_INFO"].strip("/").split("/")
        body = json.loads(environ["wsgi.input"].read() or b"null")
        status, answer = self.respond(method, path, body)
        start_response(status, [("Content-Type", "application/json")])
        return [json.dumps(answer).encode()]

    def respond(self, method, path, body):
        if path == ["notes"] and method == "POST":
            self.last += 1
            self.notes[self.last] = {"id": self.last, "text": body["text"]}
            return "201 Created", self.notes[self.last]
        if path == ["pinned"]:
            return "200 OK", [self.notes[number] for number in self.pinned]
        number = int(path[1])
        if number not in self.notes:
            return "404 Not Found", None
        if path[2:] == ["pin"]:
            self.pinned.append(number)
            return "200 OK", None
        if method == "DELETE":
            return "200 OK", self.notes.pop(number)  # the bug: it may be pinned
        if method == "PUT":
            self.notes[number]["text"] = body["text"]
        return "200 OK", self.notes[number]


class Client:
    """Sends requests to an application without a server, as those of Flask and Django do."""

    def __init__(self, app):
        self.app = app

    def request(self, method, path, body=None):
        statuses = []
        environ = {
            "REQUEST_METHOD": method,
            "PATH_INFO": path,
            "wsgi.input": io.BytesIO(b"" if body is None else json.dumps(body).encode()),
        }
        answer = b"".join(self.app(environ, lambda status, headers: statuses.append(status)))
        return int(statuses[0][:3]), json.loads(answer)


numbers = integers(1, 5)
texts = sampled_from(["", "milk", "ünïcode"])


class NotesMachine(Machine):
    steps = 25

    def start(self):
        self.client = Client(Notes())
        self.texts = {}

    @action(text=texts)
    def create(self, text):
        status, note = self.client.request("POST", "/notes", {"text": text})
        assert status == 201
        self.texts[note["id"]] = text

    @action(number=numbers)
    def read(self, number):
        status, note = self.client.request("GET", f"/notes/{number}")
        assert status == (200 if number in self.texts else 404)
        assert status == 404 or note["text"] == self.texts[number]

    @action(number=numbers, text=texts)
    def change(self, number, text):
        status, _ = self.client.request("PUT", f"/notes/{number}", {"text": text})
        if status == 200:
            self.texts[number] = text

    @action(number=numbers)
    def delete(self, number):
        self.client.request("DELETE", f"/notes/{number}")
        self.texts.pop(number, None)

    @action(number=numbers)
    def pin(self, number):
        self.client.request("POST", f"/notes/{number}/pin")

    @action
    def list_pinned(self):
        status, _ = self.client.request("GET", "/pinned")
        assert status == 200
