"""Drives Chromium through its DevTools pipe and checks the report's pages; see report-chromium.sh.
usage: report-chromium.py BROWSER FOLDER, where FOLDER has sample/, hostile/ and empty/ (test_report --write)."""
import fcntl, json, os, select, subprocess, sys, time

DEADLINE = time.monotonic() + 120


class Browser:
    """Chromium with a pipe: JSON messages that end with a NUL, commands on its descriptor 3, answers and events on 4."""

    def __init__(self, program, profile):
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
            elif method == "Network.requestWillBeSent" and not p["request"]["url"].startswith(("file://" + FOLDER, "data:")):
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


def column(key):
    """The shown texts of a column of the operations table."""
    return f"""(() => {{ const heads = [...document.querySelectorAll(".operations th button")].map(b => b.dataset.key);
        return [...document.querySelectorAll(".operations tbody tr")].map(r => r.children[heads.indexOf("{key}")].textContent); }})()"""


def click(selector):
    return f"document.querySelector('{selector}').click()"


def check_first_screen(b):
    check("title", b.value("document.title"), "tiny<script>alert(1)</script>llama · hone profile")
    check("headline", b.value("document.querySelector('h1').textContent"), lambda t: t.startswith("Memory traffic of attention bounds"))
    check("model", b.value("document.querySelector('#where b').textContent"), "tiny<script>alert(1)</script>llama")
    check("tiles", b.value("[...document.querySelectorAll('.tile h3')].map(h => h.textContent)"),
          ["Step time, median", "Samples per second", "Tokens per second", "MFU", "Memory at its peak"])
    check("bottlenecks", b.value("document.querySelectorAll('#bottlenecks li').length"), 4)
    check("parts of the split", b.value("document.querySelectorAll('#iteration .bar')[0].children.length"), 3)     # the others are too short
    check("every part has a size", b.value("[...document.querySelectorAll('#iteration .bar span')].every(s => s.getBoundingClientRect().width >= 1)"))


def check_table(b, data):
    by = lambda key, rows, name, sign: [r[name] for r in sorted(rows, key=lambda r: (r[key] is None, sign * (r[key] or 0)))]
    check("kinds by time", b.value(column("kind")), by("self_us", data["kinds"], "kind", -1))
    b.value(click('.operations button[data-key="efficiency"]'))
    check("sorted downwards", b.value("document.querySelector('th[aria-sort=descending]').textContent"), "roofline")
    down = b.value(column("efficiency"))
    check("roofline downwards", [float(t.split()[0]) for t in down], lambda v: v == sorted(v, reverse=True) and v[0] > v[-1])
    b.value(click('.operations button[data-key="efficiency"]'))
    check("roofline upwards", b.value(column("efficiency")), lambda v: v == sorted(v, key=lambda t: float(t.split()[0])))
    b.value(click('.operations button[data-key="kind"]'))
    check("kinds by name", b.value(column("kind")), lambda v: v == sorted(v))
    check("the header keeps the focus", b.value("document.activeElement.dataset.key"), "kind")
    b.value("document.querySelectorAll('#operations .buttons button')[1].click()")
    check("first ops", b.value("document.querySelectorAll('.operations tbody tr').length"), 25)
    b.value(click("#operations .plain"))
    check("all ops", b.value("document.querySelectorAll('.operations tbody tr').length"), len(data["ops"]))
    b.value("""(() => { const i = document.querySelector('#operations input'); i.value = 'Softmax backward';
        i.dispatchEvent(new Event('input')); })()""")
    b.mouse_over(".operations tbody td")
    check("a row under the mouse", b.value(TIP), lambda t: t and t.endswith(".attn.softmax.grad"))
    check("filtered", b.value(column("name")), lambda v: sorted(v) == [f"blocks.{i}.attn.softmax.grad" for i in range(4)])


def check_charts(b, data):
    dots = b.value("document.querySelectorAll('#roofline circle.dot').length")
    bare = b.value("document.querySelectorAll('#roofline .no-flops i').length")
    check("every op is a dot", dots + bare, len(data["ops"]))
    check("dots are inside the plot", b.value("""(() => { const s = document.querySelector('#roofline svg'), w = +s.getAttribute('width'), h = +s.getAttribute('height');
        return [...s.querySelectorAll('circle')].every(c => c.cx.baseVal.value > 0 && c.cx.baseVal.value < w && c.cy.baseVal.value > 0 && c.cy.baseVal.value < h); })()"""))
    check("ceilings", b.value("document.querySelectorAll('#roofline .ceiling').length"), len(data["machine"]["peaks"]["levels"]) + 1)
    b.mouse_over("#roofline circle.dot")
    longest = max((o for o in data["ops"] if o["flops"] > 0), key=lambda o: o["self_us"])
    check("the longest op under the mouse", b.value(TIP), lambda t: t and t.startswith(longest["name"]))
    b.value("document.querySelector('#roofline svg').focus()")
    b.press("ArrowRight")
    check("the first op by key", b.value(TIP), lambda t: t and t.startswith(longest["name"]))
    check("memory areas", b.value("[...document.querySelectorAll('#memory path.area')].filter(p => p.getAttribute('d').length > 100).length"), 5)
    check("peak", b.value("document.querySelector('#memory .peak-label').textContent"), "peak 189\u00a0MB")
    cells = {(o["layer"], o["kind"]) for o in data["ops"]}
    check("heat map", b.value("document.querySelectorAll('#layers td.cell').length"), len(cells))
    check("findings", b.value("document.querySelectorAll('article.finding').length"), 5)
    check("matrix", b.value("document.querySelectorAll('.matrix a').length"), 5)


INK = """(() => { const c = document.querySelector('#timeline canvas'), copy = document.createElement('canvas');
    copy.width = c.width; copy.height = c.height;
    const ctx = copy.getContext('2d', {willReadFrequently: true}); ctx.drawImage(c, 0, 0);
    const d = ctx.getImageData(0, 0, c.width, c.height).data;
    let n = 0, sum = 0; for (let i = 0; i < d.length; i += 4) if (d[i] !== d[0] || d[i + 1] !== d[1]) { n++; sum = (sum * 31 + d[i] + i) % 1e9; }
    return [n, sum]; })()"""


def check_timeline(b):
    before = b.value(INK)
    check("timeline has boxes", before[0], lambda n: n > 5000)
    b.mouse_over("#timeline canvas", 0.5, 0.7)        # the second thread, which has no gaps
    check("an op under the mouse", b.value(TIP),
          lambda t: t and "blocks." in t)
    b.value("document.querySelector('#timeline canvas').focus()")
    b.press("+")
    b.settle()
    check("zoom changes it", b.value(INK) != before)
    b.press("0")
    b.settle()
    check("and the whole step comes back", b.value(INK), before)


def check_looks(b):
    for width in (390, 1280):
        b.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 500)
        b.settle()
        b.settle()
        check(f"nothing sticks out at {width}", b.value("document.documentElement.scrollWidth"), lambda w: w <= width)
    light = b.value("getComputedStyle(document.body).backgroundColor")
    b.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    b.settle()
    dark = b.value("getComputedStyle(document.body).backgroundColor")
    check("dark mode", (light, dark), lambda c: sum(map(int, c[0][4:-1].split(","))) > 600 and sum(map(int, c[1][4:-1].split(","))) < 120)
    check("it prints", len(b.call("Page.printToPDF", printBackground=True)["data"]), lambda n: n > 20000)
    b.call("Emulation.setEmulatedMedia", features=[])


def check_policy(b):
    """A script and a style that were slipped in do nothing."""
    b.value("""(() => { const s = document.createElement('script'); s.textContent = 'window.slipped = 1'; document.body.append(s);
        const t = document.createElement('div'); t.id = 'slip'; t.setAttribute('style', 'width: 7px'); document.body.append(t); })()""")
    check("a script without the nonce", b.value("typeof window.slipped"), "undefined")
    check("a style without the nonce", b.value("document.getElementById('slip').getBoundingClientRect().width"), lambda w: w != 7)


def main(program):
    b = Browser(program, os.path.join(FOLDER, "browser"))
    try:
        target = b.call("Target.createTarget", url="about:blank")["targetId"]
        b.session = b.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            b.call(domain + ".enable")
        b.call("Emulation.setDeviceMetricsOverride", width=1280, height=800, deviceScaleFactor=1, mobile=False)
        b.open(FOLDER + "/sample/report.html")
        with open(FOLDER + "/sample/report.json") as f:
            data = json.load(f)
        check_first_screen(b)
        check_table(b, data)
        check_charts(b, data)
        check_timeline(b)
        check_looks(b)
        check("complaints of the sample", b.complaints(), [])
        check_policy(b)
        for name in ("hostile", "empty"):
            b.open(f"{FOLDER}/{name}/report.html")
            check(f"parts of {name}", b.value("document.querySelectorAll('main > section').length"), 9)
            check(f"the end of {name} is reached", b.value("document.querySelector('footer').textContent"), lambda t: t.startswith("hone"))
            check(f"scripts of {name}", b.value("document.scripts.length"), 3)
            check(f"complaints of {name}", b.complaints(), [])
        check("names stay text", b.value("document.images.length"), 0)
    finally:
        b.process.terminate()
        b.process.wait()
    sys.exit(1 if failures else 0)


FOLDER = os.path.realpath(sys.argv[2])
main(sys.argv[1])
