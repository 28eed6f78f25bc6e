# SPDX-License-Identifier: MIT
"""A headless Chromium, driven through the DevTools protocol: opens files,
moves the mouse, clicks, types, and answers questions in JavaScript. Uses
nothing but Python's own library."""

import base64
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
    "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--remote-debugging-port=0",
    "--window-size=1200,800",
)
SECONDS = 60


def find_browser():
    for program in PROGRAMS:
        path = shutil.which(program)
        if path:
            return path
    return None


class WebSocket:
    """Text messages over one connection, as a client (RFC 6455)."""

    def __init__(self, url):
        host, path = url.removeprefix("ws://").split("/", 1)
        name, port = host.split(":")
        self.socket = socket.create_connection((name, int(port)), SECONDS)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode())
        self.waiting = b""
        while b"\r\n\r\n" not in self.waiting:
            self.waiting += self.socket.recv(4096)
        head, self.waiting = self.waiting.split(b"\r\n\r\n", 1)
        assert b" 101 " in head.split(b"\r\n")[0], head

    def take(self, count):
        while len(self.waiting) < count:
            more = self.socket.recv(1 << 16)
            if not more:
                raise EOFError("the browser has closed the connection")
            self.waiting += more
        taken, self.waiting = self.waiting[:count], self.waiting[count:]
        return taken

    def send(self, text):
        payload = text.encode()
        mask = os.urandom(4)
        size = len(payload)
        if size < 126:
            head = struct.pack("!BB", 0x81, 0x80 | size)
        elif size < 1 << 16:
            head = struct.pack("!BBH", 0x81, 0x80 | 126, size)
        else:
            head = struct.pack("!BBQ", 0x81, 0x80 | 127, size)
        masked = bytes(b ^ mask[i % 4] for i, b in enumerate(payload))
        self.socket.sendall(head + mask + masked)

    def receive(self):
        text = b""
        while True:
            first, size = self.take(2)
            size &= 0x7f
            if size == 126:
                size = struct.unpack("!H", self.take(2))[0]
            elif size == 127:
                size = struct.unpack("!Q", self.take(8))[0]
            part = self.take(size)
            if first & 0x0f in (0, 1):
                text += part
                if first & 0x80:
                    return text.decode()


class Browser:
    KEYS = {"Escape": 27, "Enter": 13, "Backspace": 8, "ArrowUp": 38,
            "ArrowDown": 40, "ArrowLeft": 37, "ArrowRight": 39}

    def __init__(self, program):
        self.profile = tempfile.mkdtemp(prefix="browser-")
        self.process = subprocess.Popen(
            [program, *OPTIONS, f"--user-data-dir={self.profile}",
             "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True)
        try:
            port = self.wait_for_port()
            pages = json.load(urllib.request.urlopen(
                f"http://127.0.0.1:{port}/json/list", timeout=SECONDS))
            page = next(p for p in pages if p["type"] == "page")
            self.socket = WebSocket(page["webSocketDebuggerUrl"])
        except BaseException:
            self.close()
            raise
        self.number = 0
        self.problems = []  # errors in the page's scripts
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")

    def wait_for_port(self):
        path = os.path.join(self.profile, "DevToolsActivePort")
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            if os.path.exists(path):
                with open(path, encoding="ascii") as file:
                    lines = file.read().split()
                if len(lines) == 2:
                    return int(lines[0])
            if self.process.poll() is not None:
                raise RuntimeError("the browser ended with code "
                                   f"{self.process.returncode}")
            time.sleep(0.05)
        raise TimeoutError("the browser did not start")

    def close(self):
        """Ends the browser and what it started, and removes its files."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, **parameters):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method,
                                     "params": parameters}))
        while True:
            message = json.loads(self.socket.receive())
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.note(message)

    def note(self, message):
        if message.get("method") == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(message["params"])[:500])
        elif message.get("method") == "Log.entryAdded":
            entry = message["params"]["entry"]
            if entry["level"] == "error":
                self.problems.append(entry["text"])

    def ask(self, expression):
        result = self.call("Runtime.evaluate", expression=expression,
                           returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result}")
        return result["result"].get("value")

    def wait_until(self, expression):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            if self.ask(expression):
                return
            time.sleep(0.05)
        raise TimeoutError(expression)

    def open(self, path, ready):
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        self.wait_until(f"document.readyState === 'complete' && ({ready})")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def move(self, x, y):
        self.mouse("mouseMoved", x, y)

    def click(self, x, y):
        self.move(x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)

    def click_element(self, selector):
        box = self.ask(
            "(() => { const b = document.querySelector("
            f"{json.dumps(selector)}).getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()")
        self.click(*box)

    def press(self, key):
        code = self.KEYS.get(key, ord(key.upper()) if len(key) == 1 else 0)
        text = {} if key in self.KEYS else {"text": key}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key,
                  windowsVirtualKeyCode=code, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key,
                  windowsVirtualKeyCode=code)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def picture(self, path):
        shot = self.call("Page.captureScreenshot", format="png")
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))
