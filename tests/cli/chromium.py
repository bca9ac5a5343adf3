"""Chromium driven through its DevTools pipe, and checks that every page of a report must pass."""
import fcntl, json, os, select, subprocess, sys, time

DEADLINE = time.monotonic() + 120


class Browser:
    """Chromium with a pipe: JSON messages that end with a NUL, commands on its descriptor 3, answers and events on 4."""

    def __init__(self, program, folder):
        """folder: where the pages are, of which nothing else may be asked for"""
        self.folder, profile = folder, os.path.join(folder, "browser")
        down, self.down = os.pipe()
        self.up, up = os.pipe()
        down, up = (fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (down, up))

        def descriptors():
            os.dup2(down, 3)
            os.dup2(up, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
             "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=descriptors, pass_fds=(3, 4), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(down)
        os.close(up)
        self.last_id, self.session, self.buffer, self.events = 0, None, b"", []

    def message(self):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.up], [], [], max(0, DEADLINE - time.monotonic()))
            data = os.read(self.up, 1 << 20) if ready else b""
            if not data:
                sys.exit("the browser " + ("does not answer" if not ready else "has ended"))
            self.buffer += data
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **params):
        self.last_id += 1
        request = {"id": self.last_id, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.down, json.dumps(request).encode() + b"\0")
        while True:
            m = self.message()
            if m.get("id") == self.last_id:
                if "error" in m:
                    sys.exit(f"{method}: {m['error']}")
                return m["result"]
            self.events.append(m)

    def wait(self, method):
        while not any(e.get("method") == method for e in self.events):
            self.events.append(self.message())

    def value(self, expression):
        """The value of a JavaScript expression; promises are waited for."""
        r = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in r:
            sys.exit(f"{expression}: {r['exceptionDetails']['exception'].get('description')}")
        return r["result"].get("value")

    def mouse_over(self, selector, dx=0.5, dy=0.5):
        """Moves the mouse over a part of the page until its tip shows; a busy machine may lay the page out late."""
        for i in range(50):
            x, y = self.value(f"""(() => {{ const e = document.querySelector({json.dumps(selector)});
                e.scrollIntoView({{block: "center", behavior: "instant"}}); const b = e.getBoundingClientRect();
                return [b.left + b.width * {dx}, b.top + b.height * {dy}]; }})()""")
            self.settle()
            self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x + i % 2, y=y)
            self.settle()
            if self.value(TIP):
                return
            time.sleep(0.1)

    def focus(self, selector):
        """Scrolls to a part of the page first and waits: scrolling closes tips, a frame later."""
        e = f"document.querySelector({json.dumps(selector)})"
        self.value(e + ".scrollIntoView({block: 'center', behavior: 'instant'})")
        self.settle()
        self.value(e + ".focus({preventScroll: true})")

    def press(self, key):
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def settle(self):
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def open(self, path):
        self.events.clear()
        self.call("Page.navigate", url="file://" + path)
        self.wait("Page.loadEventFired")
        self.settle()

    def complaints(self):
        """What the console, the page or the network did that a page on its own should not."""
        out = []
        for e in self.events:
            method, p = e.get("method"), e.get("params", {})
            if method == "Runtime.exceptionThrown":
                out.append(p["exceptionDetails"].get("exception", {}).get("description", "exception"))
            elif method == "Runtime.consoleAPICalled":
                out.append(f"console.{p['type']}: {p['args']}")
            elif method == "Log.entryAdded" and p["entry"]["level"] in ("error", "warning"):
                out.append(p["entry"]["text"])
            elif method == "Page.javascriptDialogOpening":
                out.append("a dialog: " + p["message"])
            elif method == "Network.requestWillBeSent" and not p["request"]["url"].startswith(("file://" + self.folder, "data:")):
                out.append("a request: " + p["request"]["url"])
        return out


failures = 0


def check(what, got, expected=True):
    global failures
    good = expected(got) if callable(expected) else got == expected
    if not good:
        failures += 1
        print(f"{what}: {got!r}" + ("" if callable(expected) else f", expected {expected!r}"), file=sys.stderr)


TIP = "(document.querySelector('#tip:not([hidden]) b') || {}).textContent"


INK = """(() => { const c = document.querySelector('#timeline canvas'), copy = document.createElement('canvas');
    copy.width = c.width; copy.height = c.height;
    const ctx = copy.getContext('2d', {willReadFrequently: true}); ctx.drawImage(c, 0, 0);
    const d = ctx.getImageData(0, 0, c.width, c.height).data;
    let n = 0, sum = 0; for (let i = 0; i < d.length; i += 4) if (d[i] !== d[0] || d[i + 1] !== d[1]) { n++; sum = (sum * 31 + d[i] + i) % 1e9; }
    return [n, sum]; })()"""


# Texts that stand out too little from what is behind them: less than 4.5 to 1.
FAINT = """(() => { const rgb = c => c.match(/[\\d.]+/g).map(Number), light = c => c.slice(0, 3).map(v => v / 255)
        .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] === 1) return c; } return [255, 255, 255]; };
    const ratio = e => { const a = light(rgb(getComputedStyle(e).color)), b = light(behind(e)); return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); };
    return [...document.querySelectorAll('h1, h2, h3, p, dt, dd, th, .chip, .copy, a, summary, .tile .value')]
        .filter(e => e.offsetWidth && e.textContent.trim() && ratio(e) < 4.5).map(e => e.className + ' ' + e.textContent.slice(0, 40)).slice(0, 5); })()"""


def check_screen(b, what, width):
    """The page at one width, in one theme: nothing sticks out, all words can be read, and there is something to see."""
    b.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 500)
    b.settle()
    b.settle()
    check(f"nothing sticks out {what}", b.value("document.documentElement.scrollWidth"), lambda w: w <= width)
    check(f"faint words {what}", b.value(FAINT), [])
    b.value("scrollTo({top: 0, behavior: 'instant'})")
    b.settle()
    check(f"a picture {what}", len(b.call("Page.captureScreenshot", format="png")["data"]), lambda n: n > 15000)


def check_looks(b):
    check_screen(b, "at 390", 390)
    check_screen(b, "at 1280", 1280)
    light = b.value("getComputedStyle(document.body).backgroundColor")
    b.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    b.settle()
    dark = b.value("getComputedStyle(document.body).backgroundColor")
    check("dark mode", (light, dark), lambda c: sum(map(int, c[0][4:-1].split(","))) > 600 and sum(map(int, c[1][4:-1].split(","))) < 120)
    check_screen(b, "in the dark at 390", 390)
    check_screen(b, "in the dark at 1280", 1280)
    check("it prints", len(b.call("Page.printToPDF", printBackground=True)["data"]), lambda n: n > 20000)
    b.call("Emulation.setEmulatedMedia", features=[])


def with_page(program, folder, checks):
    """Runs the checks in a browser with a page, and ends with 1 if one of them failed."""
    b = Browser(program, folder)
    try:
        target = b.call("Target.createTarget", url="about:blank")["targetId"]
        b.session = b.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            b.call(domain + ".enable")
        b.call("Emulation.setDeviceMetricsOverride", width=1280, height=800, deviceScaleFactor=1, mobile=False)
        checks(b)
    finally:
        b.process.terminate()
        b.process.wait()
    sys.exit(1 if failures else 0)
