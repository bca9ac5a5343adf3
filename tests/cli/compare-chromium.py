"""Checks the pages of hone compare in Chromium; see compare-chromium.sh.
usage: compare-chromium.py BROWSER FOLDER, where FOLDER has sample/ and hostile/."""
import json, os, sys

from chromium import TIP, check, check_looks, with_page

SECTIONS = "[...document.querySelectorAll('main > section')].map(e => e.id)"


def texts(selector):
    return f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent.replace(/\\u00a0/g, ' '))"


def count(selector):
    return f"document.querySelectorAll({json.dumps(selector)}).length"


def click(b, text):
    b.value(f"[...document.querySelectorAll('#losses button')].find(e => e.textContent === {json.dumps(text)}).click()")


def checks(b):
    folder = os.path.realpath(sys.argv[2])
    data = json.load(open(folder + "/sample/report.json"))
    b.open(folder + "/sample/report.html")
    check("sections", b.value(SECTIONS), ["overview", "losses", "speed", "memory", "figures", "differences"])
    check("title", b.value("document.title"), "3 runs · hone compare")
    check("headline", b.value("document.querySelector('h1').textContent"), data["headline"])
    check("headline names the best", data["headline"].startswith("fast ends with the lowest validation loss of those that finished, 2 of 3 runs: 1.2857"))
    check("the best is that of the finished ones", b.value(texts(".tile p"))[0], "fast, of 2 of 3 runs that finished with one")
    check("tiles", b.value(texts(".tile .value")), ["1.2857", "1.03 k tokens/s", "4.00 MB", "1 key"])
    check("a line per run and chart", b.value(count(".curve-line")), 6)
    check("a dot per evaluation", b.value(count("#losses circle")), 15)
    check("over steps", b.value(texts("#losses .axis-label")), ["steps", "validation loss"])
    click(b, "training")
    check("training", b.value(texts("#losses .axis-label")), ["steps", "training loss"])
    check("a dot per log whose loss is finite", b.value(count("#losses circle")), 140)
    click(b, "tokens")
    check("over tokens", b.value(texts(".axis-label")), ["tokens", "training loss", "tokens", "tokens/s"])
    click(b, "time")
    click(b, "log")
    check("over time", b.value(texts("#losses .axis-label")), ["training time", "training loss"])
    click(b, "bad")
    check("a run that is not drawn", b.value(count("#losses .curve-line")), 2)
    b.focus("#losses svg")
    b.press("ArrowLeft")
    check("a place by key", b.value(TIP), lambda t: t.replace("\u00a0", " ") == "49.0 s training time")
    check("its values, the lowest first", b.value(texts("#tip dt")), ["fast", "slow"])
    b.press("Escape")
    b.mouse_over("#speed svg")
    check("a place by mouse", b.value(texts("#tip dt")), ["slow", "fast"])
    check("figures", b.value(texts("#figures tbody tr:nth-child(3) td"))[:5], ["bad", "nan", "500/500", "nan", "0.1731"])
    check("threads beside the device", b.value(texts("#figures tbody td:last-child")), ["cpu ×2"] * 3)
    check("the least memory is that of several", b.value(texts(".tile p"))[2], "slow and others, as planned")
    check("configs", b.value(texts("#differences th")), ["run", "train.lr"])
    check("bars of memory", b.value(count("#memory .track")), 6)
    check_looks(b)
    check("no complaints", b.complaints(), [])

    b.open(folder + "/hostile/report.html")
    check("names stay text", [b.value("document.images.length"), b.value("document.scripts.length")], [0, 3])
    check("the name", b.value(texts("#figures tbody td:first-child"))[0], "<img src=x onerror=alert(1)>")
    check("many runs", b.value(count("#losses .curve-line")), 21)
    check("told apart by dashes", b.value("new Set([...document.querySelectorAll('#losses .curve-line')].map(e => e.getAttribute('style'))).size"), 21)
    check_looks(b)
    check("no complaints about markup", b.complaints(), [])


with_page(sys.argv[1], os.path.realpath(sys.argv[2]), checks)
