"""Checks the live page in Chromium; see live-chromium.sh.
usage: live-chromium.py BROWSER FOLDER PORT PID, where a run with that process id serves the port."""
import json, os, signal, sys, time

from chromium import TIP, check, check_looks, with_page

folder, port, pid = os.path.realpath(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
HERE = f"http://127.0.0.1:{port}/"
SECTIONS = "[...document.querySelectorAll('main > section')].map(e => e.id)"


def texts(selector):
    return f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent.replace(/\\u00a0/g, ' '))"


def until(b, what, expression, seconds=60):
    """Waits for something that comes by itself."""
    end = time.monotonic() + seconds
    while not b.value(expression):
        if time.monotonic() > end:
            return check(what, "it did not come")
        time.sleep(0.2)


def complaints(b):
    """All but what the page asks its own server for, and that this is gone in the end."""
    return [c for c in b.complaints() if not c.startswith("a request: " + HERE) and "ERR_CONNECTION_REFUSED" not in c]


def checks(b):
    b.events.clear()
    b.call("Page.navigate", url=HERE)
    b.wait("Page.loadEventFired")
    check("sections", b.value(SECTIONS), ["overview", "losses", "speed", "samples"])
    until(b, "a curve", "((document.querySelector('#losses .curve-line') || {getAttribute() {}}).getAttribute('d') || '').length > 40")
    until(b, "a sample", "document.querySelectorAll('#samples .sample').length > 0")
    check("the state", b.value(texts("#where"))[0], lambda t: t.startswith("tiny · running · cpu"))
    check("the title", b.value("document.title"), lambda t: t.endswith("% · tiny · hone live"))
    check("tiles", b.value(texts(".tile h3")), ["Step", "Loss", "Validation loss", "Speed", "Memory"])
    step = b.value("parseInt(document.querySelector('.tile .value').textContent)")
    until(b, "it goes on", f"parseInt(document.querySelector('.tile .value').textContent) > {step}")
    check("two curves", b.value("document.querySelectorAll('#losses .curve-line').length"), 2)
    b.value("[...document.querySelectorAll('#losses button')].find(e => e.textContent === 'tokens').click()")
    check("over tokens", b.value(texts("#speed .axis-label")), ["tokens", "tokens/s"])
    check("a token per character", b.value("[...document.querySelectorAll('.sample')].every(e => e.textContent.length === 30)"))
    check_looks(b)
    os.kill(pid, signal.SIGINT)
    until(b, "the end", "/stopped|no answer/.test(document.querySelector('#where').textContent)")
    check("the headline", b.value("document.querySelector('h1').textContent"), lambda t: t in ("tiny was stopped", "tiny is being trained"))
    check("no complaints", complaints(b), [])


with_page(sys.argv[1], folder, checks)
